"""Models with one external tensor, at different places."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from onnx import ModelProto, SparseTensorProto, TensorProto, parser

WEIGHTS = np.arange(6, dtype=np.float32).tobytes()


def model_with(folder: Path, *, place: str = "initializer", name: str = "model.onnx", **entries: object) -> Path:
    """Write a model whose tensor ``w`` (float[2, 3]) has its data outside, as the entries say."""
    model = _PLACES[place](_tensor(entries))
    path = folder / name
    path.write_bytes(model.SerializeToString())
    return path


def external(location: str, place: str = "initializer") -> bytes:
    """The bytes of such a model."""
    return _PLACES[place](_tensor({"location": location})).SerializeToString()


def _tensor(entries: dict[str, object]) -> TensorProto:
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2, 3], data_location=TensorProto.EXTERNAL)
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def _parse(body: str, functions: str = "") -> ModelProto:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": 18, "local": 1]> {body} {functions}')


def _initializer(tensor: TensorProto) -> ModelProto:
    model = _parse(
        "g (float[2, 3] x) => (float[2, 1] y) "
        "{ a = Constant <value_ints = [1]> () z = Add (x, w) y = ReduceMean (z, a) }"
    )
    model.graph.initializer.append(tensor)
    return model


def _attribute(tensor: TensorProto) -> ModelProto:
    model = _parse("g (float[2, 3] x) => (float[2, 3] y) { w = Constant () y = Add (x, w) }")
    attribute = model.graph.node[0].attribute.add(name="value", type=4)
    attribute.t.CopyFrom(tensor)
    return model


def _branch(tensor: TensorProto) -> ModelProto:
    model = _parse(
        "g (float[2, 3] x, bool c) => (float[2, 3] y) { y = If (c) "
        "<then_branch = t () => (float[2, 3] p) { p = Add (x, w) }, "
        "else_branch = e () => (float[2, 3] q) { q = Neg (x) }> }"
    )
    model.graph.node[0].attribute[0].g.initializer.append(tensor)
    return model


def _function(tensor: TensorProto) -> ModelProto:
    model = _parse(
        "g (float[2, 3] x) => (float[2, 3] y) { y = local.f (x) }",
        '<domain: "local", opset_import: ["": 18]> f (x) => (y) { w = Constant () y = Add (x, w) }',
    )
    attribute = model.functions[0].node[0].attribute.add(name="value", type=4)
    attribute.t.CopyFrom(tensor)
    return model


def _sparse(tensor: TensorProto) -> ModelProto:
    model = _parse("g (float[2, 3] x) => (float[2, 3] y) { y = Neg (x) }")
    model.graph.sparse_initializer.append(SparseTensorProto(values=tensor, dims=[9]))
    return model


_PLACES = {
    "initializer": _initializer,
    "attribute": _attribute,
    "branch": _branch,
    "function": _function,
    "sparse": _sparse,
}
