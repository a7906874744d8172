"""Put a drawn node into a model: how its inputs reach it, and which types and shapes are stated."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper, shape_inference

from tools.fuzz.case import OPAQUE
from tools.fuzz.drawing import NotDrawableError, type_proto
from tools.fuzz.gaps import facts_of
from tools.fuzz.nodes import DrawnNode
from tools.fuzz.places import STACKING, Placed, finish, put, value_name
from tools.fuzz.recipes import is_elementwise
from tools.fuzz.runtimes import RUNTIMES, trusted_run
from tools.fuzz.values import type_string

__all__ = ["blurred", "constant_node", "inferred_outputs", "outputs_of", "place", "stated_shape"]


def stated_shape(rng: np.random.Generator, shape: Sequence[int], prefix: str) -> list[int | str | None]:
    """The stated shape: complete, or with some sizes as names or unknown."""
    if rng.random() < 0.6:
        return list(shape)
    kinds = rng.integers(0, 3, len(shape))
    return [(size, f"{prefix}_{at}", None)[kind] for at, (size, kind) in enumerate(zip(shape, kinds, strict=True))]


def constant_node(rng: np.random.Generator, value: np.ndarray, name: str, opset: int) -> NodeProto:
    """A Constant node in one of the opset version's forms for the value."""
    kind = {"i": "int", "f": "float"}.get(value.dtype.kind) if value.dtype in (np.int64, np.float32) else None
    if kind and opset >= 12 and value.ndim < 2 and rng.random() < 0.4:
        key, given = f"value_{kind}{'s' if value.ndim else ''}", value.tolist()
        attribute_type = {"value_int": 2, "value_ints": 7, "value_float": 1, "value_floats": 6}[key]
        node: NodeProto = helper.make_node("Constant", [], [name])
        node.attribute.append(helper.make_attribute(key, given, attr_type=attribute_type))
        return node
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(value))


def _input(placed: Placed, name: str, value: Any) -> None:
    shape = stated_shape(placed.rng, value.shape, name) if isinstance(value, np.ndarray) else None
    placed.inputs.append(helper.make_value_info(name, type_proto(_type_of(value), shape)))
    placed.feeds[name] = value


def _as_node(opset: int, value: np.ndarray) -> bool:
    """Whether a Constant node can hold a value; before opset 9 only floats."""
    return opset >= 9 or value.dtype in (np.float32, np.float64, np.float16)


def _constant(placed: Placed, name: str, value: np.ndarray, *, inside: list[NodeProto] | None) -> None:
    if not _as_node(placed.opset, value):
        placed.initializers.append(numpy_helper.from_array(value, name))
    elif inside is not None and placed.flip():
        inside.append(constant_node(placed.rng, value, name, placed.opset))
    elif placed.flip(0.4):
        placed.nodes.append(constant_node(placed.rng, value, name, placed.opset))
    else:
        placed.initializers.append(numpy_helper.from_array(value, name))


def alone(node: DrawnNode) -> tuple[ModelProto, dict[str, Any]]:
    """A model with only the node, which states its inputs and the types of its outputs, and values for its inputs.

    Parameters that exporters write as constants are initializers, so that shape inference reads them.
    """
    placed = Placed(np.random.default_rng(0), node.opset)
    feeds = {}
    for at, given in enumerate(node.inputs):
        if given is not None and given.is_parameter and isinstance(given.value, np.ndarray):
            placed.initializers.append(numpy_helper.from_array(given.value, f"x{at}"))
        elif given is not None:
            feeds[f"x{at}"] = given.value
    for name, value in feeds.items():
        shape = None if isinstance(value, list) else value.shape
        placed.inputs.append(helper.make_value_info(name, type_proto(_type_of(value), shape)))
    names = ["" if given is None else f"x{at}" for at, given in enumerate(node.inputs)]
    types = [spelt for spelt in node.output_types if spelt]
    outputs = [f"y{at}" for at in range(len(types))]
    placed.nodes = [node.written(names, outputs)]
    placed.outputs = [
        helper.make_value_info(name, type_proto(spelt)) for name, spelt in zip(outputs, types, strict=True)
    ]
    model = finish(placed)
    model.ir_version = max(model.ir_version, 4)
    return model, feeds


_KEEPING = ("Cast", "Clip", "Dropout")
"""Operators with recipes that keep the shape of their data, which shape inference at opset 1 does not know."""


def outputs_of(node: DrawnNode, runtimes: Collection[str] = tuple(RUNTIMES)) -> Sequence[Any] | None:
    """The outputs of the node by the first runtime that runs it and is not known to be wrong."""
    model, feeds = alone(node)
    facts = facts_of(model, feeds.values())
    for runtime in runtimes:
        values = trusted_run(runtime, model, feeds, facts).values
        if values is not None and all(value is not None for value in values):
            return values
    return None


def inferred_outputs(node: DrawnNode) -> Sequence[ValueInfoProto]:
    """The outputs of the node as shape inference finds them.

    Raises:
        NotDrawableError: the node is not valid.
    """
    try:
        inferred = shape_inference.infer_shapes(alone(node)[0], check_type=True, strict_mode=True, data_prop=True)
    except shape_inference.InferenceError as error:
        raise NotDrawableError(f"{node.op_type} is not valid") from error
    return list(inferred.graph.output)


def _shapes(node: DrawnNode) -> list[tuple[int, ...] | None]:
    """The shapes of the node's outputs, None for sequences, from a runtime that runs it, or else from inference.

    Raises:
        NotDrawableError: neither works.
    """
    outputs = outputs_of(node)
    if outputs is not None:
        return [None if isinstance(value, list) else np.shape(value) for value in outputs]
    inferred = inferred_outputs(node)
    first = node.inputs[0] if node.inputs else None
    if first is not None and (is_elementwise(node.op_type) or node.op_type in _KEEPING):
        return [np.shape(first.value)] * len(inferred)
    tensors = [value.type.tensor_type for value in inferred]
    if not all(one.HasField("shape") and all(size.HasField("dim_value") for size in one.shape.dim) for one in tensors):
        raise NotDrawableError(f"neither runtimes nor inference say what {node.op_type} yields")
    return [tuple(size.dim_value for size in one.shape.dim) for one in tensors]


def _type_of(value: Any) -> str:
    return f"seq({type_string(value[0])})" if isinstance(value, list) else type_string(value)


def blurred(placed: Placed, name: str, value: np.ndarray) -> str:
    """The same value after a node whose output, or its rank, is unknown before it runs."""
    made = f"{name}_blurred"
    if placed.opset < 5 or placed.flip():
        placed.nodes.append(helper.make_node("Opaque", [name], [made], domain=OPAQUE))
        return made
    shape = np.asarray(value.shape, np.int64)
    placed.inputs.append(helper.make_tensor_value_info(f"{name}_shape", TensorProto.INT64, [None]))
    placed.feeds[f"{name}_shape"] = shape
    placed.nodes.append(helper.make_node("Reshape", [name, f"{name}_shape"], [made]))
    return made


def place(rng: np.random.Generator, node: DrawnNode, where: str) -> tuple[ModelProto, dict[str, Any]]:
    """A model with the node in a place, and values for its inputs.

    Raises:
        NotDrawableError: the shapes of the node's outputs are unknown.
    """
    placed = Placed(rng, node.opset, shapes=_shapes(node))
    inner: list[NodeProto] = []
    names = []
    for position, given in enumerate(node.inputs):
        if given is None:
            names.append("")
            continue
        name = f"x{position}"
        value = given.value
        fixed = isinstance(value, np.ndarray) and placed.flip(0.88 if given.is_parameter else 0.15)
        if fixed:
            _constant(placed, name, value, inside=inner if where != "main" else None)
        else:
            _input(placed, name, value)
            if isinstance(value, np.ndarray) and not given.is_parameter and placed.flip(0.2):
                name = blurred(placed, name, value)
        names.append(name)
    outputs = [f"y{position}" for position, spelt in enumerate(node.output_types) if spelt]
    written = node.written(names, outputs, "the node" if placed.flip() else "")
    types = [spelt for spelt in node.output_types if spelt]
    put(placed, where, [*inner, written], outputs, types)
    _state(placed, [value_name(where, name) for name in outputs], types, (2,) if where in STACKING else ())
    return finish(placed), placed.feeds


def _state(placed: Placed, names: Sequence[str], types: Sequence[str], stacked: tuple[int, ...]) -> None:
    """State the outputs of the model with their ranks, which the checker requires."""
    for name, spelt, shape in zip(names, types, placed.shapes, strict=True):
        plain = spelt.startswith("tensor(") and shape is not None
        sizes = stated_shape(placed.rng, (*stacked, *shape), name) if plain and shape is not None else None
        placed.outputs.append(helper.make_value_info(name, type_proto(spelt, sizes)))
