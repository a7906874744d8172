"""Models as exporters write them: those in tests/data/models, and small transformers that PyTorch exports."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, helper

__all__ = ["Exported", "of_repository", "stored", "transformers"]

_STORED = Path(__file__).parents[1] / "tests" / "data" / "models"


@dataclass
class Exported:
    """A model and its inputs.

    Attributes:
        feeds: values for its inputs.
        traced: exports the same model with PyTorch's tracing exporter at an opset version; None if that is impossible.
    """

    name: str
    model: ModelProto
    feeds: Mapping[str, Any]
    traced: Callable[[int], ModelProto] | None = None

    @cached_property
    def opset(self) -> int:
        """The opset version of the model."""
        return next(entry.version for entry in self.model.opset_import if entry.domain in ("", "ai.onnx"))


def of_repository() -> Iterator[Exported]:
    """The exported models that the tests use, with 3 for sizes that are not stated."""
    generator = np.random.default_rng(0)
    for path in sorted(_STORED.glob("*.onnx")):
        model = onnx.load(path)
        feeds = {}
        for value in model.graph.input:
            shape = [size.dim_value or 3 for size in value.type.tensor_type.shape.dim]
            element_type = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
            feeds[value.name] = (generator.random(shape) * 2).astype(element_type)
        yield Exported(path.stem, model, feeds)


def stored(folder: Path) -> Iterator[Exported]:
    """The models in a folder, each with its inputs beside it: NAME.onnx and NAME.npz."""
    for path in sorted(folder.glob("*.onnx")):
        feeds = path.with_suffix(".npz")
        if feeds.is_file():
            yield Exported(path.stem, onnx.load(path), dict(np.load(feeds)))


_SIZES: Mapping[str, Any] = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
}  # fmt: skip
_TEXT = {**_SIZES, "vocab_size": 100, "max_position_embeddings": 64}
_IMAGE = {**_SIZES, "image_size": 32, "patch_size": 8}
_TRANSFORMERS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "albert": ("Albert", {**_TEXT, "embedding_size": 16}),
    "bert": ("Bert", _TEXT),
    "distilbert": ("DistilBert", {"vocab_size": 100, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48}),
    "gemma": ("Gemma", {**_TEXT, "num_key_value_heads": 2, "head_dim": 8}),
    "gpt2": ("GPT2", {"vocab_size": 100, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}),
    "qwen2": ("Qwen2", {**_TEXT, "num_key_value_heads": 2}),
    "squeezebert": ("SqueezeBert", {**_TEXT, "embedding_size": 32}),
    "vit": ("ViT", _IMAGE),
}
"""Architectures by the names of their classes in transformers, and their sizes; the weights are random."""


def transformers(opsets: Sequence[int]) -> Iterator[Exported]:
    """Transformers from PyTorch's exporter with named sizes, at some opset versions; none without PyTorch."""
    try:
        import torch
        import transformers as library
    except ImportError:
        return
    for name, (architecture, sizes) in _TRANSFORMERS.items():
        torch.manual_seed(0)
        made = getattr(library, f"{architecture}Model")(getattr(library, f"{architecture}Config")(**sizes)).eval()
        of_image = "image_size" in sizes
        keys = ("pixel_values",) if of_image else ("input_ids", "attention_mask")
        module = _first_result(torch, made, keys)
        if of_image:
            arguments = (torch.randn(1, 3, 32, 32),)
        else:
            arguments = (torch.randint(2, 100, (1, 7)), torch.ones(1, 7, dtype=torch.int64))
        named = {0: "batch"} if of_image else {0: "batch", 1: "seq"}
        shapes = dict.fromkeys(keys, named)
        feeds = {key: value.numpy() for key, value in zip(keys, arguments, strict=True)}

        def traced(opset: int, module: Any = module, arguments: Any = arguments, shapes: Any = shapes) -> ModelProto:
            written = io.BytesIO()
            torch.onnx.export(
                module, arguments, written, dynamo=False, opset_version=opset, input_names=list(shapes),
                dynamic_axes=shapes,
            )  # fmt: skip
            return ModelProto.FromString(written.getvalue())

        for opset in opsets:
            dims = tuple({axis: torch.export.Dim(size) for axis, size in named.items()} for _ in keys)
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, "model.onnx")
                torch.onnx.export(
                    module, arguments, path, dynamo=True, opset_version=opset, input_names=list(keys),
                    dynamic_shapes=(dims,), external_data=False, verbose=False,
                )  # fmt: skip
                yield Exported(f"{name}, {opset}", onnx.load(path), feeds, traced)


def _first_result(torch: Any, model: Any, keys: Sequence[str]) -> Any:
    """A module that takes positional arguments and yields the first result."""

    class First(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *values: Any) -> Any:
            inputs = dict(zip(keys, values, strict=True))
            if hasattr(model.config, "use_cache"):
                inputs["use_cache"] = False
            return self.model(**inputs)[0]

    return First().eval()
