"""Random valid models around Reduce nodes: shared axes, branches, functions, every element type, odd names."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from onnx import AttributeProto, ModelProto, TensorProto, defs, helper

from tests.legalization.models import OPERATORS, axes_are_input
from tools.fuzz.reductions.axes import axes_input, draw_axes
from tools.fuzz.reductions.graphs import NAMES, Draw, Graph, Value, World, constant

__all__ = ["OPSETS", "Sample", "samples"]

OPSETS = tuple(opset for opset in (8, 9, 11, 12, 13, 15, 17, 18, 20, 21, 26, 28) if opset <= defs.onnx_opset_version())

_TYPES = (
    *[TensorProto.FLOAT] * 8, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.INT32,
    TensorProto.INT64, TensorProto.UINT32, TensorProto.UINT64, TensorProto.INT8, TensorProto.UINT8, TensorProto.BOOL,
)  # fmt: skip


@dataclass(frozen=True)
class Sample:
    """A model, and values for its inputs."""

    model: ModelProto
    feeds: dict[str, np.ndarray]


@st.composite
def samples(draw: Draw, opsets: tuple[int, ...] = OPSETS) -> Sample:
    """Valid models of one to five steps, each a Reduce node or a construct with one, with input values."""
    world = World(draw, draw(st.sampled_from(opsets)))
    graph = Graph(world)
    data = _input(world)
    graph.values.append(data)
    for _ in range(draw(st.integers(1, 5))):
        graph.values.append(_step(graph, graph.values, depth=0))
    return Sample(_model(world, graph), world.feeds)


def _input(world: World) -> Value:
    shape = tuple(world.draw(st.lists(st.sampled_from((1, 2, 2, 3, 3, 0)), max_size=4)))
    name = world.fresh()
    element_type = int(world.pick(_TYPES))
    stated = [world.pick([size, f"d{index}", None]) for index, size in enumerate(shape)]
    world.inputs.append(helper.make_tensor_value_info(name, element_type, stated))
    seed = world.draw(st.integers(0, 9))
    values = np.random.default_rng(seed).uniform(-2 if seed > 5 else 0.5, 2.5, shape)
    dtype = helper.tensor_dtype_to_np_dtype(element_type)
    whole = dtype.kind in "iub" and dtype.name != "bfloat16"
    world.feeds[name] = np.asarray(np.abs(np.ceil(values)) if whole else values).astype(dtype).reshape(shape)
    return Value(name, element_type, shape)


def _step(graph: Graph, values: list[Value], depth: int) -> Value:
    world = graph.world
    steps = [_reduce, _reduce, _reduce, _elementwise]
    if depth < 2:
        steps.append(_choice)
    # Before opset 11, a Loop must carry a value.
    if depth == 0 and not graph.root.is_function and world.opset >= 11:
        steps.append(_loop)
    if not graph.root.is_function and world.opset >= 8:
        steps.append(_call)
    # The newest value is the most likely to come out of earlier nodes.
    return world.pick(steps)(graph, world.pick([*values, values[-1]]), depth)


_INEXACT = ("ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean")


def _operators(world: World, data: Value) -> list[str]:
    """Reduce operators that accept the data and whose result does not depend on the runtime.

    Each runtime rounds integers in its own way, and the mean of no elements is undefined.
    """
    left_out = _INEXACT if helper.tensor_dtype_to_np_dtype(data.element_type).kind in "iu" else ()
    left_out = ("ReduceMean", *left_out) if 0 in data.shape else left_out
    return [name for name in OPERATORS if _takes(name, world.opset, data.element_type) and name not in left_out]


def _takes(op_type: str, opset: int, element_type: int) -> bool:
    schema = defs.get_schema(op_type, opset, "")
    return f"tensor({TensorProto.DataType.Name(element_type).lower()})" in schema.inputs[0].types


def _elementwise(graph: Graph, data: Value, depth: int) -> Value:
    world = graph.world
    op_type = world.pick(["Identity", "Abs", "Add", "Cast"])
    if op_type == "Cast":
        floats = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64, TensorProto.INT32)
        to = int(world.pick(floats))
        if data.element_type != TensorProto.BFLOAT16 or world.opset >= 13:
            return Value(graph.add("Cast", [data.name], to=to), to, data.shape)
    if not _takes(op_type, world.opset, data.element_type):
        return data if op_type == "Identity" else _elementwise(graph, data, depth)
    inputs = [data.name] * (2 if op_type == "Add" else 1)
    return Value(graph.add(op_type, inputs), data.element_type, data.shape)


def _after(data: Value, name: str, axes: tuple[int, ...], keepdims: int | None, noop: int | None) -> Value:
    rank = len(data.shape)
    over = {axis % rank for axis in axes} or (set() if noop else set(range(rank)))
    shape = [1 if axis in over else size for axis, size in enumerate(data.shape) if axis not in over or keepdims != 0]
    return Value(name, data.element_type, tuple(shape))


def _reduce(graph: Graph, data: Value, depth: int) -> Value:
    world = graph.world
    operators = _operators(world, data)
    if not operators:
        to = TensorProto.FLOAT
        if data.element_type == TensorProto.BFLOAT16 and world.opset < 13:
            return data
        data = Value(graph.add("Cast", [data.name], to=to), to, data.shape)
        operators = _operators(world, data)
    op_type = str(world.pick(operators))
    attributes: dict[str, object] = {}
    inputs, axes = [data.name], ()
    keepdims, noop = world.pick([None, 0, 1]), None
    if keepdims is not None:
        attributes["keepdims"] = keepdims
    if axes_are_input(op_type, world.opset):
        noop = world.pick([None, None, 0, 1])
        if noop is not None:
            attributes["noop_with_empty_axes"] = noop
        how = world.pick(["given", "given", "given", "given", "absent", "nameless"])
        if how == "given":
            name, axes = axes_input(graph, data)
            inputs.append(name)
        elif how == "nameless":
            inputs.append("")
    elif world.pick([True, True, False]):
        axes = draw_axes(graph, data.shape)
        if axes:
            attributes["axes"] = axes
    return _after(data, graph.add(op_type, inputs, **attributes), axes, keepdims, noop)


def _choice(graph: Graph, data: Value, depth: int) -> Value:
    """An If whose branches yield values of one shape; both branches may use the same names."""
    world = graph.world
    branches = {}
    is_true = world.flip()
    condition = constant(graph, np.array(is_true))
    outside = set(world.used)
    result = None
    for branch in ("then_branch", "else_branch"):
        if branch == "else_branch" and world.flip():
            # Branches do not see each other, so they may use the same names.
            world.used = set(outside) | {value.name for value in world.inputs}
            world.used |= {tensor.name for tensor in graph.root.initializers}
        inner = Graph(world, graph)
        value = _step(inner, [data], depth + 1)
        if result is None:
            result = value
        if value.element_type != result.element_type:
            value = Value(inner.add("Cast", [value.name], to=result.element_type), result.element_type, value.shape)
        if not inner.nodes:
            value = Value(inner.add("Identity", [value.name]), value.element_type, value.shape)
        stated = helper.make_tensor_value_info(value.name, value.element_type, None)
        branches[branch] = helper.make_graph(inner.nodes, world.pick(NAMES) or "g", [], [stated], inner.initializers)
        outside |= world.used
        if (branch == "then_branch") == is_true:
            chosen = value
    world.used = outside
    return Value(graph.add("If", [condition], **branches), chosen.element_type, chosen.shape)


def _loop(graph: Graph, data: Value, depth: int) -> Value:
    """A Loop of one or two steps that reduces the same data each time and stacks the results."""
    world = graph.world
    steps = int(world.draw(st.integers(1, 2)))
    inner = Graph(world, graph)
    names = [world.fresh() for _ in range(2)]
    value = _step(inner, [data], depth + 1)
    if not inner.nodes or value is data:
        value = Value(inner.add("Identity", [value.name]), value.element_type, value.shape)
    go_on = inner.add("Identity", [names[1]])
    body = helper.make_graph(
        inner.nodes,
        "body",
        [
            helper.make_tensor_value_info(names[0], TensorProto.INT64, []),
            helper.make_tensor_value_info(names[1], TensorProto.BOOL, []),
        ],
        [
            helper.make_tensor_value_info(go_on, TensorProto.BOOL, []),
            helper.make_tensor_value_info(value.name, value.element_type, None),
        ],
        inner.initializers,
    )
    count = constant(graph, np.array(steps, np.int64))
    output = graph.add("Loop", [count, constant(graph, np.array(True))], body=body)
    return Value(output, value.element_type, (steps, *value.shape))


def _call(graph: Graph, data: Value, depth: int) -> Value:
    """A call of a function around one Reduce node, with random attribute references and axes inputs."""
    world = graph.world
    operators = _operators(world, data)
    if not operators:
        return data
    op_type = str(world.pick(operators))
    as_input = axes_are_input(op_type, world.opset)
    # A function has its own names.
    used, world.used = world.used, set()
    body = Graph(world, None, is_function=True)
    a = world.fresh()
    inputs, declared, given, defaults = [a], [], {}, []
    node_inputs, noop, keepdims = [a], None, world.pick([None, 0, 1])
    axes: tuple[int, ...] = draw_axes(graph, data.shape)
    how = world.pick(["input", "reference", "constant", "absent"] if as_input else ["reference", "attribute", "absent"])
    reduce_attributes: list[AttributeProto] = []
    if how == "input":
        inputs.append(world.fresh())
        node_inputs.append(inputs[1])
    elif how == "reference" and as_input and axes and world.opset >= 12:
        made = helper.make_node("Constant", [], [world.fresh()])
        made.attribute.add(name="value_ints", type=AttributeProto.INTS, ref_attr_name="which")
        body.nodes.append(made)
        node_inputs.append(made.output[0])
        given["which"] = axes
    elif how == "reference" and not as_input and axes:
        reduce_attributes.append(AttributeProto(name="axes", type=AttributeProto.INTS, ref_attr_name="which"))
        if world.flip():
            given["which"] = axes
        else:
            axes = ()
        declared.append("which")
    elif how == "constant":
        node_inputs.append(constant(body, np.array(axes, np.int64)))
    elif how == "attribute" and axes:
        reduce_attributes.append(helper.make_attribute("axes", axes))
    else:
        axes = ()
    if "which" in given and "which" not in declared:
        declared.append("which")
    if keepdims is not None:
        keepdims = _referred(world, "keepdims", keepdims, reduce_attributes, declared, given, defaults)
    if as_input:
        noop = world.pick([None, 0, 1])
        if noop is not None:
            noop = _referred(world, "noop_with_empty_axes", noop, reduce_attributes, declared, given, defaults)
    output = body.add(op_type, node_inputs)
    body.nodes[-1].attribute.extend(reduce_attributes)
    if world.flip():
        output = body.add("Identity", [output])
    name = f"f{len(world.functions)}"
    imports = [helper.make_opsetid("", world.opset)]
    world.functions.append(
        helper.make_function(
            "local", name, inputs, [output], body.nodes, imports, attributes=declared, attribute_protos=defaults
        )
    )
    world.used = used
    call_inputs = [data.name]
    if how == "input":
        handed, axes = axes_input(graph, data)
        call_inputs.append(handed)
    call = graph.add(name, call_inputs, domain="local", **given)
    result = _after(data, call, axes, keepdims, noop)
    again = [value for value in graph.values if value.shape == data.shape and value.element_type == data.element_type]
    if again and how == "input" and world.flip():
        handed, axes = axes_input(graph, data)
        other = world.pick(again).name
        result = _after(data, graph.add(name, [other, handed], domain="local", **given), axes, keepdims, noop)
    return result


def _referred(world, name, value, attributes, declared, given, defaults):  # type: ignore[no-untyped-def]
    """State an attribute of the node, or refer to one of the function with a default, a value, or neither."""
    how = world.pick(["stated", "given", "default"])
    if how == "stated":
        attributes.append(helper.make_attribute(name, value))
        return value
    attributes.append(AttributeProto(name=name, type=AttributeProto.INT, ref_attr_name=name))
    if how == "given":
        declared.append(name)
        given[name] = value
    else:
        defaults.append(helper.make_attribute(name, value))
        if world.flip():
            value = given[name] = world.pick([0, 1])
    return value


def _model(world: World, graph: Graph) -> ModelProto:
    outputs = []
    seen = set()
    for value in (graph.values[-1], *graph.values[1:-1]):
        if value.name not in seen and value is not graph.values[0] and (not outputs or world.flip()):
            seen.add(value.name)
            stated = [f"{value.name}_{index}" for index in range(len(value.shape))]
            outputs.append(helper.make_tensor_value_info(value.name, value.element_type, stated))
    if not outputs or not graph.nodes:
        last = graph.values[-1]
        name = graph.add("Identity", [last.name])
        outputs = [helper.make_tensor_value_info(name, last.element_type, [None] * len(last.shape))]
    made = helper.make_graph(graph.nodes, world.pick(NAMES) or "g", world.inputs, outputs, graph.initializers)
    imports = [helper.make_opsetid(world.pick(["", "ai.onnx"]), world.opset)]
    if world.functions:
        imports.insert(world.pick([0, 1]), helper.make_opsetid("local", 1))
    model = helper.make_model(made, opset_imports=imports, functions=world.functions)
    oldest = helper.find_min_ir_version_for(imports, ignore_unknown=True)
    model.ir_version = max(8 if world.functions else 4, oldest)
    return model
