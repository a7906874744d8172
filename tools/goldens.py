"""Record the result of every operation on many models, and compare later code with the record.

    python tools/goldens.py record before.json [MODEL OR FOLDER ...]
    python tools/goldens.py compare before.json [--up-to-names] [MODEL OR FOLDER ...]

The operations are conversions to several opset versions, expansions with each rule book, raises, repairs, and
conversions for runtimes. Each yields bytes or a refusal; the record holds the hash of the bytes or the text of the
refusal. Without paths, the models are those of the tests and the node cases of the installed onnx. `compare` exits with
status 1 if any result differs. With `--up-to-names`, two models are the same if they compute their outputs in the same
way; names of inner values and the order of nodes do not count.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto

import reducelower

MODELS = Path(__file__).parents[1] / "tests" / "data" / "models"
OPSETS = (9, 11, 13, 17, 18, 21, 25)
BOOKS = ("spec", "stable", "core")
RUNTIMES = ("mnn", "opencv", "openvino", "tract", "onnxruntime@1.16")

Operation = Callable[[ModelProto], ModelProto]


def operations() -> Iterator[tuple[str, Operation]]:
    """The operations by name."""
    for opset in OPSETS:
        yield f"to {opset}", lambda model, opset=opset: reducelower.convert_version(model, opset)
    for book in BOOKS:
        yield f"expand {book}", lambda model, book=book: reducelower.expand(model, rules=book)
    yield "raise", lambda model: reducelower.raise_reductions(model)
    yield "repair", lambda model: reducelower.repair(model).model
    for name in RUNTIMES:
        target = reducelower.Target(runtime=reducelower.load_runtime(name))
        yield f"for {name}", lambda model, target=target: reducelower.legalize(model, target).model


def node_cases() -> Iterator[tuple[str, bytes]]:
    """The models of onnx's own cases, without their data."""
    from onnx.backend.test.loader import load_model_tests

    for case in load_model_tests(kind="node"):
        yield f"onnx:{case.name}", case.model.SerializeToString()


def models(paths: Iterable[Path]) -> Iterator[tuple[str, bytes]]:
    """Models by name: those at the paths, or by default those that every machine has."""
    chosen = list(paths)
    for path in chosen or [MODELS]:
        files = sorted(path.rglob("*.onnx")) if path.is_dir() else [path]
        yield from ((str(file.relative_to(path.parent)), file.read_bytes()) for file in files)
    if not chosen:
        yield from node_cases()


def digest(data: bytes) -> str:
    """A short hash."""
    return hashlib.blake2b(data, digest_size=12).hexdigest()


def meaning(model: ModelProto) -> str:
    """A hash of how the outputs are computed; names of inner values and the order of nodes do not count."""
    functions = {(item.domain, item.name, item.overload): item for item in model.functions}
    opsets = sorted((item.domain, item.version) for item in model.opset_import)
    bodies = sorted(
        digest(
            repr(
                (key, _values(item.node, {name: f"in{at}" for at, name in enumerate(item.input)}, item.output))
            ).encode()
        )
        for key, item in functions.items()
    )
    return digest(repr((model.ir_version, opsets, bodies, _graph(model.graph, {}))).encode())


def _graph(graph: GraphProto, outer: Mapping[str, str], positional: bool = False) -> Any:
    """The inputs of a graph and how its outputs are computed; inputs of a body count by their position."""
    keys = dict(outer)
    for tensor in graph.initializer:
        nameless = onnx.TensorProto()
        nameless.CopyFrom(tensor)
        nameless.name = nameless.doc_string = ""
        keys[tensor.name] = digest(nameless.SerializeToString(deterministic=True))
    for at, value in enumerate(graph.input):
        keys[value.name] = f"in{len(outer)}.{at}" if positional else f"in {value.name} {value.name in keys}"
    names = (
        [] if positional else [(value.name, value.type.SerializeToString()) for value in (*graph.input, *graph.output)]
    )
    return names, _values(graph.node, keys, [value.name for value in graph.output])


def _values(nodes: Iterable[NodeProto], known: dict[str, str], outputs: Iterable[str]) -> list[str]:
    known[""] = ""
    for node in nodes:
        attributes = sorted((item.name, _attribute(item, known)) for item in node.attribute)
        inputs = [known.get(name, f"? {name}") for name in node.input]
        key = digest(repr((node.domain, node.op_type, node.overload, inputs, attributes)).encode())
        known.update({name: f"{key}.{at}" for at, name in enumerate(node.output) if name})
    return [known.get(name, f"? {name}") for name in outputs]


def _attribute(attribute: AttributeProto, known: Mapping[str, str]) -> str:
    if attribute.type == AttributeProto.GRAPH:
        return repr(_graph(attribute.g, known, positional=True))
    nameless = AttributeProto()
    nameless.CopyFrom(attribute)
    nameless.t.name = ""
    return digest(nameless.SerializeToString(deterministic=True))


def results(name: str, data: bytes) -> dict[str, list[str]]:
    """The result of every operation on a model: hashes of its bytes and of its meaning, or the text of a refusal."""
    results_of = {}
    for title, operation in operations():
        try:
            model = operation(onnx.load_model_from_string(data))
        except (reducelower.ConversionError, ValueError) as error:
            results_of[f"{name}: {title}"] = [f"{type(error).__name__}: {error}"]
        else:
            results_of[f"{name}: {title}"] = [digest(model.SerializeToString()), meaning(model)]
    return results_of


def recorded(paths: Iterable[Path], jobs: int) -> dict[str, list[str]]:
    """The result of every operation on every model."""
    together: dict[str, list[str]] = {}
    with ProcessPoolExecutor(jobs) as pool:
        for results_of in pool.map(results, *zip(*models(paths), strict=True), chunksize=8):
            together.update(results_of)
    return together


def main() -> int:
    """Record or compare, as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["record", "compare"])
    parser.add_argument("record", type=Path, help="the file with the record")
    parser.add_argument("paths", type=Path, nargs="*", metavar="PATH", help="models, or folders of them")
    parser.add_argument("--up-to-names", action="store_true", help="ignore names of new values and the order of nodes")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_intermixed_args()

    start = time.monotonic()
    now = recorded(arguments.paths, arguments.jobs)
    refused = sum(len(each) == 1 for each in now.values())
    print(f"{len(now)} results, {refused} of them refusals, {time.monotonic() - start:.0f} s")
    if arguments.action == "record":
        arguments.record.write_text(json.dumps(now, indent=0))
        return 0
    before = json.loads(arguments.record.read_text())
    which = -1 if arguments.up_to_names else 0
    apart = [
        key for key in now.keys() | before.keys() if (now.get(key) or [""])[which] != (before.get(key) or [""])[which]
    ]
    for key in sorted(apart):
        texts = [
            "not there" if not each else each[0] if len(each) == 1 else "a model"
            for each in (before.get(key), now.get(key))
        ]
        print(f"{key}\n    before: {texts[0]}\n    now:    {texts[1]}")
    print(f"{len(apart)} differ")
    return int(bool(apart))


if __name__ == "__main__":
    sys.exit(main())
