"""Convert models of many exporters to many opset versions, and print a table: `python -m tools.exporters.corpus`.

It needs torch, transformers and onnxruntime's quantizer, and takes some ten minutes. It makes the tables of
docs/support.md; `python -m tools.exporters.corpus networks` makes those of one part alone.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, checker

import reducelower
from reducelower.errors import ConversionError

from .layers import LAYERS
from .networks import NETWORKS
from .quantized import quantized
from .transformers import MODELS, exported, run, torch

TARGETS = (9, 11, 13, 15, 17, 21, 23)
TRACED = (11, 14, 17)
DYNAMO = (18, 21)
QUANTIZED = {
    "tensors": "QDQ",
    "channels": "QDQ",
    "operators": "QOperator",
    "dynamic": "dynamic",
    "16 bits": "QDQ, 16 bits",
    "4 bits": "QDQ, 4-bit weights",
}
FUSED = ("Bert", "Roberta", "Electra", "DistilBert", "ViT", "GPT2")


@dataclass(frozen=True)
class Source:
    """A model that is valid and runs.

    Attributes:
        kind: who wrote it, as in the table.
        name: what it contains.
        model: the model.
        feeds: inputs by name.
        is_exact: whether results must have the same bits after a conversion.
    """

    kind: str
    name: str
    model: ModelProto
    feeds: Mapping[str, np.ndarray]
    is_exact: bool = False


def _transformers(folder: Path) -> Iterator[Source]:
    for name in MODELS:
        for opset in (*TRACED[1:], *DYNAMO):
            yield from _tried(_transformer, name, opset, folder)


def _layers(folder: Path) -> Iterator[Source]:
    for name in LAYERS:
        for opset in (*TRACED, *DYNAMO):
            yield from _tried(_layer, name, opset, folder)


def _networks(folder: Path) -> Iterator[Source]:
    for name, network in NETWORKS.items():
        for opset in network.opsets:
            yield from _tried(_network, name, opset, folder)


def _processed(folder: Path) -> Iterator[Source]:
    for name in FUSED:
        yield from _tried(_fused, name, 14, folder)
    for kind in QUANTIZED:
        for opset in (13, 17, 21):
            if opset == 21 or "bits" not in kind:
                yield from _tried(_quantized, kind, opset, folder)


PARTS: Mapping[str, Callable[[Path], Iterator[Source]]] = {
    "transformers": _transformers,
    "layers": _layers,
    "networks": _networks,
    "processed": _processed,
}
"""Each part of the corpus with the function that makes its models."""


def _tried(make: Callable[[str, int, Path], Source], name: str, opset: int, folder: Path) -> Iterator[Source]:
    try:
        with warnings.catch_warnings(), redirect_stdout(StringIO()):  # an export that fails prints its graph
            warnings.simplefilter("ignore")
            source = make(name, opset, folder)
        checker.check_model(source.model, full_check=True)
        run(source.model, source.feeds)
    except (Exception, pytest.skip.Exception) as error:
        print(f"left out: {name} at {opset}: {' '.join(str(error).split())[:100]}", file=sys.stderr)
        return
    yield source


def _written_by(opset: int) -> str:
    return f"torch {torch.__version__.split('+')[0]} by {'dynamo' if opset in DYNAMO else 'tracing'}"


def _transformer(name: str, opset: int, folder: Path) -> Source:
    model, feeds = exported(name, folder, opset=opset, dynamo=opset in DYNAMO)
    return Source(_written_by(opset), f"{name} {opset}", model, feeds)


def _layer(name: str, opset: int, folder: Path) -> Source:
    torch.manual_seed(0)
    module, data = LAYERS[name]()
    path = folder / "layer.onnx"
    storage: dict[str, Any] = {"external_data": False, "verbose": False} if opset in DYNAMO else {}
    torch.onnx.export(module.eval(), (data,), path, opset_version=opset, dynamo=opset in DYNAMO, **storage)
    model = onnx.load(path)
    return Source(_written_by(opset), f"{name} {opset}", model, {model.graph.input[0].name: data.numpy()})


def _network(name: str, opset: int, folder: Path) -> Source:
    torch.manual_seed(0)
    network, path = NETWORKS[name], folder / "network.onnx"
    module, inputs = network.make().eval(), network.inputs()
    is_dynamo = opset >= DYNAMO[0] and not network.is_scripted
    storage: dict[str, Any] = {"external_data": False, "verbose": False} if is_dynamo else {}
    written = torch.jit.script(module) if network.is_scripted else module
    with torch.no_grad():
        torch.onnx.export(written, inputs, path, opset_version=opset, dynamo=is_dynamo, **storage)
    model = onnx.load(path)
    way = "scripting" if network.is_scripted else "dynamo" if is_dynamo else "tracing"
    feeds = {value.name: one.numpy() for value, one in zip(model.graph.input, inputs, strict=True)}
    return Source(f"networks, torch {torch.__version__.split('+')[0]} by {way}", f"{name} {opset}", model, feeds)


def _fused(name: str, opset: int, folder: Path) -> Source:
    model, feeds = exported(name, folder, opset=opset, dynamo=False)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(folder / "fused.onnx")
    onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    # onnxruntime puts LayerNormalization into the default domain of opset 14, which the checker refuses.
    mended = reducelower.convert_version(onnx.load(folder / "fused.onnx"), opset + 3)
    return Source("onnxruntime's optimizer", f"{name} {opset}", mended, feeds)


def _quantized(kind: str, opset: int, folder: Path) -> Source:
    model = quantized(kind, opset, folder)
    feeds = {"x": np.random.default_rng(7).normal(size=(2, 4, 9, 9)).astype(np.float32)}
    return Source(f"onnxruntime's quantizer, {QUANTIZED[kind]}", f"{kind} {opset}", model, feeds, is_exact=True)


def outcome(source: Source, target: int, expected: list[Any]) -> str:
    """What is wrong after the conversion to an opset version; empty if the result is valid and computes the same."""
    try:
        converted = reducelower.convert_version(source.model, target)
    except ConversionError as refused:
        return f"refused: {refused}"
    try:
        checker.check_model(converted, full_check=True)
        outputs = run(converted, source.feeds)
    except Exception as error:
        return f"invalid: {error}"
    for one, other in zip(outputs, expected, strict=True):
        bounds = {"rtol": 0.0, "atol": 0.0} if source.is_exact else {"rtol": 1e-4, "atol": 1e-5}
        if not np.allclose(one, other, equal_nan=True, **bounds):
            return f"different by {np.abs(np.asarray(one, np.float64) - np.asarray(other, np.float64)).max():.3g}"
    return ""


def main() -> int:
    """Print the table, and below it every conversion that is not right."""
    parser = argparse.ArgumentParser(prog="python -m tools.exporters.corpus", description=(__doc__ or "").split(":")[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="parts to make; default: all")
    parts = parser.parse_args().parts or PARTS
    right, tried = Counter[tuple[str, int]](), Counter[tuple[str, int]]()
    kinds = Counter[str]()
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        for source in (source for part in parts for source in PARTS[part](Path(folder))):
            kinds[source.kind] += 1
            expected = run(source.model, source.feeds)
            for target in TARGETS:
                problem = outcome(source, target, expected)
                tried[source.kind, target] += 1
                right[source.kind, target] += not problem
                if problem:
                    wrong.append(f"{source.kind}, {source.name}, to {target}: {' '.join(problem.split())[:160]}")
    print(f"{sum(kinds.values())} models\n")
    print(f"| written by | models | {' | '.join(map(str, TARGETS))} |\n|---|--:{'|--:' * len(TARGETS)}|")
    for kind, count in kinds.items():
        cells = [f"{right[kind, target]} / {tried[kind, target]}" for target in TARGETS]
        print(f"| {kind} | {count} | {' | '.join(cells)} |")
    print("\n".join(["", *wrong]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
