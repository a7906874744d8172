"""Kinds of faults that a conversion might make, each as a function that plants one in a model."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper, shape_inference

__all__ = ["FAULTS", "plant"]

Fault = Callable[[ModelProto, random.Random], str]
"""A function that plants one fault and returns where; an empty string if the model has no place for it."""

FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16)
INTEGERS = (TensorProto.INT64, TensorProto.INT32, TensorProto.INT8, TensorProto.UINT8)


def plant(model: ModelProto, fault: str, seed: int) -> tuple[ModelProto, str]:
    """A copy of a model with one fault, and where it is; an empty string if there is no place for it."""
    planted = ModelProto()
    planted.CopyFrom(model)
    where = FAULTS[fault](planted, random.Random(f"{fault} {seed}"))
    return planted, where


def _graphs(graph: GraphProto) -> Iterator[GraphProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from _graphs(attribute.g)


def _nodes(model: ModelProto, *kinds: str) -> list[NodeProto]:
    bodies = [graph.node for graph in _graphs(model.graph)] + [function.node for function in model.functions]
    return [node for nodes in bodies for node in nodes if not kinds or node.op_type in kinds]


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


def other_operator(exchange: dict[str, str]) -> Fault:
    def fault(model: ModelProto, choose: random.Random) -> str:
        nodes = _nodes(model, *exchange)
        if not nodes:
            return ""
        node = choose.choice(nodes)
        where = _name(node)
        node.op_type = exchange[node.op_type]
        return f"{where} becomes {node.op_type}"

    return fault


def exchanged_inputs(places: dict[str, tuple[int, int]]) -> Fault:
    def fault(model: ModelProto, choose: random.Random) -> str:
        nodes = [node for node in _nodes(model, *places) if len(node.input) > max(places[node.op_type])]
        nodes = [node for node in nodes if len({node.input[at] for at in places[node.op_type]}) == 2]
        if not nodes:
            return ""
        node = choose.choice(nodes)
        one, other = places[node.op_type]
        node.input[one], node.input[other] = node.input[other], node.input[one]
        return _name(node)

    return fault


def changed_attribute(names: Sequence[str], change: Callable[[AttributeProto, random.Random], object]) -> Fault:
    def fault(model: ModelProto, choose: random.Random) -> str:
        places = [
            (node, item)
            for node in _nodes(model)
            for item in node.attribute
            if item.name in names and not item.ref_attr_name
        ]
        if not places:
            return ""
        node, item = choose.choice(places)
        value = change(item, choose)
        if value is None:
            return ""
        name = item.name
        item.CopyFrom(helper.make_attribute(name, value))
        return f"{_name(node)}: {name} becomes {value}"

    return fault


def dropped_attribute(model: ModelProto, choose: random.Random) -> str:
    """Drop an attribute that the node does not require."""
    places = [
        (node, at) for node in _nodes(model) for at, item in enumerate(node.attribute) if node.op_type != "Constant"
    ]
    if not places:
        return ""
    node, at = choose.choice(places)
    name = node.attribute[at].name
    del node.attribute[at]
    return f"{_name(node)}: {name} dropped"


def _constants(model: ModelProto) -> Iterator[TensorProto]:
    for graph in _graphs(model.graph):
        yield from graph.initializer
    for node in _nodes(model, "Constant"):
        for item in node.attribute:
            if item.type == AttributeProto.TENSOR:
                yield item.t


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

    def fault(model: ModelProto, choose: random.Random) -> str:
        read = {
            name for node in _nodes(model, *read_by) for at, name in enumerate(node.input) if not slots or at in slots
        }
        constant = {node.attribute[0].t.name: node.output[0] for node in _nodes(model, "Constant") if node.attribute}
        places = []
        for tensor in _constants(model):
            value = numpy_helper.to_array(tensor)
            is_read = not read_by or tensor.name in read or constant.get(tensor.name) in read
            if tensor.data_type in types and value.size and is_read and (value.size == 1 or not scalar):
                places.append((tensor, value.copy()))
        if not places:
            return ""
        tensor, value = choose.choice(places)
        at = choose.randrange(value.size)
        before = value.ravel()[at]
        with np.errstate(all="ignore"):
            value.ravel()[at : at + 1] = np.array([change(before.item())]).astype(value.dtype)
        if value.ravel()[at] == before:
            return ""
        _with_value(tensor, value)
        return f"constant {tensor.name!r}[{at}]: {before} becomes {value.ravel()[at]}"

    return fault


def exchanged_rows(model: ModelProto, choose: random.Random) -> str:
    """Exchange the first two rows of a weight."""
    weights = [item for item in _constants(model) if item.dims and item.dims[0] > 1 and item.data_type in FLOATS]
    if not weights:
        return ""
    tensor = choose.choice(weights)
    value = numpy_helper.to_array(tensor).copy()
    if (value[0] == value[1]).all():
        return ""
    value[[0, 1]] = value[[1, 0]]
    _with_value(tensor, value)
    return f"rows of {tensor.name!r}"


def lost(*kinds: str) -> Fault:
    def fault(model: ModelProto, choose: random.Random) -> str:
        nodes = _nodes(model, *kinds)
        if not nodes:
            return ""
        node = choose.choice(nodes)
        where = _name(node)
        node.op_type = "Identity"
        del node.attribute[:]
        del node.input[1:]
        return f"{where} lost"

    return fault


def inserted(body: Callable[[str, str, str, int], list[NodeProto]], types: Sequence[int]) -> Fault:
    """Insert nodes between a value of the main graph and its readers, or the output of the model."""

    def fault(model: ModelProto, choose: random.Random) -> str:
        types_of = _types(model)
        places = [
            (at, node)
            for at, node in enumerate(model.graph.node)
            if len(node.output) == 1 and types_of.get(node.output[0], (0,))[0] in types and node.op_type != "Constant"
        ]
        if not places:
            return ""
        at, node = choose.choice(places)
        name = node.output[0]
        where = _name(node)
        node.output[0] = f"{name}/planted"
        added = body(node.output[0], name, f"{name}/p", types_of[name][0])
        rest = list(model.graph.node)[at + 1 :]
        del model.graph.node[at + 1 :]
        model.graph.node.extend([*added, *rest])
        return f"after {where}"

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


def exchanged_branches(model: ModelProto, choose: random.Random) -> str:
    """Exchange the branches of an If."""
    nodes = _nodes(model, "If")
    if not nodes:
        return ""
    node = choose.choice(nodes)
    names = {"then_branch": "else_branch", "else_branch": "then_branch"}
    for item in node.attribute:
        item.name = names[item.name]
    return _name(node)


def another_input(model: ModelProto, choose: random.Random) -> str:
    """Let a node of the main graph read another value of the same type and sizes."""
    types_of = _types(model)
    seen = [value.name for value in model.graph.input]
    places = []
    for node in model.graph.node:
        for at, name in enumerate(node.input):
            places += [
                (node, at, other)
                for other in seen
                if other != name and name in types_of and types_of.get(other) == types_of[name]
            ]
        seen += node.output
    if not places:
        return ""
    node, at, other = choose.choice(places)
    old, node.input[at] = node.input[at], other
    return f"{_name(node)} reads {other!r} for {old!r}"


def exchanged_outputs(model: ModelProto, choose: random.Random) -> str:
    """Exchange two outputs of a node."""
    nodes = [node for node in _nodes(model) if len(node.output) > 1 and all(node.output[:2])]
    if not nodes:
        return ""
    node = choose.choice(nodes)
    node.output[0], node.output[1] = node.output[1], node.output[0]
    return _name(node)


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
