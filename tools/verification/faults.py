"""Kinds of faults that a conversion might make: the places in a model where one can be planted, and how."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper, shape_inference

from reducelower.model.graph import all_nodes, bodies

__all__ = ["FAULTS", "plant"]

Place = tuple[str, Callable[[random.Random], bool | None]]
"""A place for a fault, and what plants it there; False if nothing changed."""

Fault = Callable[[ModelProto], Iterator[Place]]

FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16)
INTEGERS = (TensorProto.INT64, TensorProto.INT32, TensorProto.INT8, TensorProto.UINT8)


def plant(model: ModelProto, fault: str, seed: int) -> tuple[ModelProto, str]:
    """A copy of a model with one fault, and where it is; an empty string if there is no place for it."""
    planted = ModelProto()
    planted.CopyFrom(model)
    choose = random.Random(f"{fault} {seed}")
    places = list(FAULTS[fault](planted))
    if not places:
        return planted, ""
    where, change = choose.choice(places)
    return planted, "" if change(choose) is False else where


def _nodes(model: ModelProto, *kinds: str) -> list[NodeProto]:
    return [node for node in all_nodes(model) if not kinds or node.op_type in kinds]


def _name(node: NodeProto) -> str:
    return f"{node.op_type} {node.output[0]!r}"


def _types(model: ModelProto) -> dict[str, tuple[int, tuple[int | str, ...]]]:
    graph = shape_inference.infer_shapes(model).graph
    return {
        value.name: (
            value.type.tensor_type.elem_type,
            tuple(dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim),
        )
        for value in [*graph.value_info, *graph.input, *graph.output]
        if value.type.HasField("tensor_type")
    }


def other_operator(exchange: Mapping[str, str]) -> Fault:
    def become(node: NodeProto, other: str, _: random.Random) -> None:
        node.op_type = other

    def fault(model: ModelProto) -> Iterator[Place]:
        for node in _nodes(model, *exchange):
            other = exchange[node.op_type]
            yield f"{_name(node)} becomes {other}", partial(become, node, other)

    return fault


def exchanged_inputs(places: Mapping[str, tuple[int, int]]) -> Fault:
    def exchange(node: NodeProto, one: int, other: int, _: random.Random) -> None:
        node.input[one], node.input[other] = node.input[other], node.input[one]

    def fault(model: ModelProto) -> Iterator[Place]:
        for node in _nodes(model, *places):
            one, other = places[node.op_type]
            if len(node.input) > max(one, other) and node.input[one] != node.input[other]:
                yield _name(node), partial(exchange, node, one, other)

    return fault


def changed_attribute(names: Sequence[str], change: Callable[[AttributeProto, random.Random], object]) -> Fault:
    def changed(item: AttributeProto, choose: random.Random) -> bool:
        value = change(item, choose)
        if value is not None:
            item.CopyFrom(helper.make_attribute(item.name, value))
        return value is not None

    def fault(model: ModelProto) -> Iterator[Place]:
        for node in _nodes(model):
            for item in node.attribute:
                if item.name in names and not item.ref_attr_name:
                    yield f"{_name(node)}: {item.name}", partial(changed, item)

    return fault


def dropped_attribute(model: ModelProto) -> Iterator[Place]:
    """Drop an attribute; if the node requires it, the model is not valid."""

    def drop(node: NodeProto, at: int, _: random.Random) -> None:
        del node.attribute[at]

    for node in _nodes(model):
        for at, item in enumerate(node.attribute):
            if node.op_type != "Constant":
                yield f"{_name(node)}: {item.name} dropped", partial(drop, node, at)


def _constants(model: ModelProto) -> Iterator[TensorProto]:
    for _, holder in bodies(model):
        if isinstance(holder, GraphProto):
            yield from holder.initializer
    for node in _nodes(model, "Constant"):
        yield from (item.t for item in node.attribute if item.type == AttributeProto.TENSOR)


def _with_value(tensor: TensorProto, value: np.ndarray) -> None:
    name = tensor.name
    tensor.CopyFrom(numpy_helper.from_array(value, name))


def changed_constant(
    types: Sequence[int],
    change: Callable[[float], float],
    *,
    read_by: Sequence[str] = (),
    slots: Sequence[int] = (),
    scalar: bool = False,
) -> Fault:
    """Change one element of a constant; if operators are given, of one that they read at the slot."""

    def changed(tensor: TensorProto, choose: random.Random) -> bool:
        value = numpy_helper.to_array(tensor).copy()
        at = choose.randrange(value.size)
        before = value.ravel()[at]
        with np.errstate(all="ignore"):
            value.ravel()[at : at + 1] = np.array([change(before.item())]).astype(value.dtype)
        _with_value(tensor, value)
        return bool(value.ravel()[at] != before)

    def fault(model: ModelProto) -> Iterator[Place]:
        read = {
            name for node in _nodes(model, *read_by) for at, name in enumerate(node.input) if not slots or at in slots
        }
        constant = {node.attribute[0].t.name: node.output[0] for node in _nodes(model, "Constant") if node.attribute}
        for tensor in _constants(model):
            size = int(np.prod(tensor.dims))
            is_read = not read_by or tensor.name in read or constant.get(tensor.name) in read
            if tensor.data_type in types and size and is_read and (size == 1 or not scalar):
                yield f"constant {tensor.name!r}", partial(changed, tensor)

    return fault


def exchanged_rows(model: ModelProto) -> Iterator[Place]:
    """Exchange the first two rows of a weight."""

    def exchange(tensor: TensorProto, _: random.Random) -> bool:
        value = numpy_helper.to_array(tensor).copy()
        value[[0, 1]] = value[[1, 0]]
        _with_value(tensor, value)
        return bool((value[0] != value[1]).any())

    for tensor in _constants(model):
        if tensor.dims and tensor.dims[0] > 1 and tensor.data_type in FLOATS:
            yield f"rows of {tensor.name!r}", partial(exchange, tensor)


def lost(*kinds: str) -> Fault:
    def lose(node: NodeProto, _: random.Random) -> None:
        node.op_type = "Identity"
        del node.attribute[:]
        del node.input[1:]

    def fault(model: ModelProto) -> Iterator[Place]:
        for node in _nodes(model, *kinds):
            yield f"{_name(node)} lost", partial(lose, node)

    return fault


def inserted(body: Callable[[str, str, str, int], list[NodeProto]], types: Sequence[int]) -> Fault:
    """Insert nodes between a value of the main graph and its readers, or the output of the model."""

    def insert(graph: GraphProto, at: int, element_type: int, _: random.Random) -> None:
        output = graph.node[at].output
        name, output[0] = output[0], f"{output[0]}/planted"
        rest = list(graph.node)[at + 1 :]
        del graph.node[at + 1 :]
        graph.node.extend([*body(output[0], name, f"{name}/p", element_type), *rest])

    def fault(model: ModelProto) -> Iterator[Place]:
        types_of = _types(model)
        for at, node in enumerate(model.graph.node):
            kind = types_of.get(node.output[0], (0,))[0]
            if len(node.output) == 1 and kind in types and node.op_type != "Constant":
                yield f"after {_name(node)}", partial(insert, model.graph, at, kind)

    return fault


def _number(name: str, kind: int, value: float) -> NodeProto:
    return helper.make_node("Constant", [], [name], value=helper.make_tensor("", kind, [], [value]))


def _with_number(op_type: str, value: float) -> Callable[[str, str, str, int], list[NodeProto]]:
    return lambda x, y, p, kind: [_number(f"{p}k", kind, value), helper.make_node(op_type, [x, f"{p}k"], [y])]


def _one(op_type: str) -> Callable[[str, str, str, int], list[NodeProto]]:
    return lambda x, y, p, kind: [helper.make_node(op_type, [x], [y])]


def _through(between: int) -> Callable[[str, str, str, int], list[NodeProto]]:
    return lambda x, y, p, kind: [
        helper.make_node("Cast", [x], [f"{p}c"], to=between),
        helper.make_node("Cast", [f"{p}c"], [y], to=kind),
    ]


def _nan_to_zero(x: str, y: str, p: str, kind: int) -> list[NodeProto]:
    return [
        helper.make_node("IsNaN", [x], [f"{p}n"]),
        _number(f"{p}k", kind, 0.0),
        helper.make_node("Where", [f"{p}n", f"{p}k", x], [y]),
    ]


def _up_and_down(x: str, y: str, p: str, kind: int) -> list[NodeProto]:
    return [
        _number(f"{p}k", kind, 2.0**12 if kind == TensorProto.FLOAT16 else 2.0**100),
        helper.make_node("Mul", [x, f"{p}k"], [f"{p}m"]),
        helper.make_node("Div", [f"{p}m", f"{p}k"], [y]),
    ]


def exchanged_branches(model: ModelProto) -> Iterator[Place]:
    """Exchange the branches of an If."""
    names = {"then_branch": "else_branch", "else_branch": "then_branch"}

    def exchange(node: NodeProto, _: random.Random) -> None:
        for item in node.attribute:
            item.name = names[item.name]

    for node in _nodes(model, "If"):
        yield _name(node), partial(exchange, node)


def another_input(model: ModelProto) -> Iterator[Place]:
    """Let a node of the main graph read another value of the same type and sizes."""

    def read(node: NodeProto, at: int, other: str, _: random.Random) -> None:
        node.input[at] = other

    types_of = _types(model)
    seen = [value.name for value in model.graph.input]
    for node in model.graph.node:
        for at, name in enumerate(node.input):
            for other in seen:
                if other != name and name in types_of and types_of.get(other) == types_of[name]:
                    yield f"{_name(node)} reads {other!r} for {name!r}", partial(read, node, at, other)
        seen += node.output


def exchanged_outputs(model: ModelProto) -> Iterator[Place]:
    """Exchange two outputs of a node."""

    def exchange(node: NodeProto, _: random.Random) -> None:
        node.output[0], node.output[1] = node.output[1], node.output[0]

    for node in _nodes(model):
        if len(node.output) > 1 and all(node.output[:2]):
            yield _name(node), partial(exchange, node)


def _step(item: AttributeProto, choose: random.Random) -> object:
    return item.i + choose.choice((-1, 1))


def _flip(item: AttributeProto, choose: random.Random) -> object:
    return 1 - item.i if item.i in (0, 1) else None


def _one_step(item: AttributeProto, choose: random.Random) -> object:
    values = list(item.ints)
    if not values:
        return None
    values[choose.randrange(len(values))] += choose.choice((-1, 1))
    return values


def _reordered(item: AttributeProto, choose: random.Random) -> object:
    values = list(item.ints)
    if len(values) < 2:
        return None
    one = choose.randrange(len(values) - 1)
    values[one], values[one + 1] = values[one + 1], values[one]
    return values


def _a_tenth(item: AttributeProto, choose: random.Random) -> object:
    return item.f * 1.1 or 0.1


BINARY = dict.fromkeys(("Sub", "Div", "Pow", "MatMul", "Greater", "Less", "Mod", "PRelu", "LessOrEqual"), (0, 1))
AXES = ("Squeeze", "Unsqueeze", "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceLogSumExp", "ReduceL2")
FLAGS = (
    "noop_with_empty_axes", "largest", "sorted", "exclusive", "reverse", "select_last_index", "ceil_mode",
    "count_include_pad", "transA", "transB", "fmod", "allowzero", "linear_before_reset", "saturate",
)  # fmt: skip
EXTREMES = {"Max": "Min", "ReduceMax": "ReduceMin", "ArgMax": "ArgMin"}
OTHER_FUNCTION = {
    "Exp": "Softplus", "Log": "Sqrt", "Sqrt": "Abs", "Sigmoid": "Tanh", "Tanh": "Sigmoid", "Erf": "Tanh", "Relu": "Abs",
    "Abs": "Relu", "Neg": "Identity", "Not": "Identity", "Reciprocal": "Neg",
}  # fmt: skip

FAULTS: dict[str, Fault] = {
    "operands exchanged": exchanged_inputs(BINARY),
    "choices of a Where exchanged": exchanged_inputs({"Where": (1, 2)}),
    "sum for difference": other_operator({"Add": "Sub", "Sub": "Add"}),
    "product for quotient": other_operator({"Mul": "Div", "Div": "Mul"}),
    "greatest for least": other_operator(EXTREMES | {least: greatest for greatest, least in EXTREMES.items()}),
    "mean for sum": other_operator({"ReduceSum": "ReduceMean", "ReduceMean": "ReduceSum"}),
    "maximum for mean": other_operator({"ReduceMean": "ReduceMax", "ReduceSum": "ReduceMax"}),
    "strict for not strict": other_operator(
        {"Greater": "GreaterOrEqual", "Less": "LessOrEqual", "GreaterOrEqual": "Greater", "LessOrEqual": "Less"}
    ),
    "or for and": other_operator({"And": "Or", "Or": "And", "Xor": "Or"}),
    "rounding": other_operator({"Floor": "Ceil", "Ceil": "Floor", "Round": "Floor"}),
    "function of one value": other_operator(OTHER_FUNCTION),
    "axis": changed_attribute(("axis", "batch_dims", "batch_axis"), _step),
    "axes as an attribute": changed_attribute(("axes",), _one_step),
    "axes as an input": changed_constant((TensorProto.INT64,), lambda v: v - 1, read_by=AXES, slots=(1,)),
    "keepdims": changed_attribute(("keepdims",), _flip),
    "flag": changed_attribute(FLAGS, _flip),
    "dropped attribute": dropped_attribute,
    "attribute off by a tenth": changed_attribute(("alpha", "beta", "gamma", "lambd", "bias", "min", "max"), _a_tenth),
    "epsilon": changed_attribute(("epsilon",), lambda item, choose: item.f * 100),
    "permutation": changed_attribute(("perm",), _reordered),
    "window": changed_attribute(("kernel_shape", "pads", "strides", "dilations", "starts", "ends"), _one_step),
    "constant off by a hundredth": changed_constant(FLOATS, lambda v: v * 1.01 or 0.01),
    "constant negated": changed_constant(FLOATS, lambda v: -v),
    "scalar off by a tenth": changed_constant(FLOATS, lambda v: v * 1.1 or 0.1, scalar=True),
    "integer off by one": changed_constant(INTEGERS, lambda v: v + 1),
    "zero point off by one": changed_constant(
        INTEGERS, lambda v: v + 1, read_by=("QuantizeLinear", "DequantizeLinear"), slots=(2,)
    ),
    "scale off by a tenth": changed_constant(
        FLOATS, lambda v: v * 1.1, read_by=("QuantizeLinear", "DequantizeLinear"), slots=(1,)
    ),
    "bound of a Clip": changed_constant(FLOATS, lambda v: v + 1, read_by=("Clip", "Min", "Max"), slots=(1, 2)),
    "index": changed_constant(INTEGERS, lambda v: v - 1, read_by=("Gather", "Slice", "Pad", "Loop", "Range")),
    "rows of a weight": exchanged_rows,
    "lost Clip": lost("Clip", "Max", "Min"),
    "lost function": lost("Relu", "Abs", "Neg", "Exp", "Log", "Sqrt", "Sigmoid", "Tanh", "Floor", "Softmax", "Round"),
    "lost shift": lost("Add", "Sub"),
    "Relu6 for Relu": inserted(_with_number("Min", 6.0), FLOATS),
    "far bound": inserted(_with_number("Min", 1000.0), FLOATS),
    "Abs of floats": inserted(_one("Abs"), FLOATS),
    "Abs of integers": inserted(_one("Abs"), (TensorProto.INT64, TensorProto.INT32)),
    "Not": inserted(_one("Not"), (TensorProto.BOOL,)),
    "NaN becomes zero": inserted(_nan_to_zero, FLOATS),
    "through float16": inserted(_through(TensorProto.FLOAT16), (TensorProto.FLOAT, TensorProto.DOUBLE)),
    "through bfloat16": inserted(_through(TensorProto.BFLOAT16), (TensorProto.FLOAT,)),
    "through float": inserted(_through(TensorProto.FLOAT), (TensorProto.DOUBLE, TensorProto.INT64, TensorProto.INT32)),
    "through integers": inserted(_through(TensorProto.INT32), FLOATS),
    "through eight bits": inserted(_through(TensorProto.INT8), (TensorProto.INT64, TensorProto.INT32)),
    "overflow between": inserted(_up_and_down, FLOATS),
    "a little added": inserted(_with_number("Add", 1e-3), FLOATS),
    "a thousandth too large": inserted(_with_number("Mul", 1.001), FLOATS),
    "branches exchanged": exchanged_branches,
    "another input": another_input,
    "outputs exchanged": exchanged_outputs,
}
