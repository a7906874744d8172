"""Models made to hurt, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from onnx import AttributeProto, FunctionProto, ModelProto, NodeProto, TensorProto, helper

__all__ = ["HOSTILE"]

OPSET = helper.make_opsetid("", 18)
LOCAL = helper.make_opsetid("local", 1)
OPSET_13 = (helper.make_opsetid("", 13), LOCAL)
MANY = 10**5
LONG = 10**6


def model(
    *nodes: NodeProto,
    imports: Sequence[object] = (OPSET, LOCAL),
    functions: Sequence[FunctionProto] = (),
    tensors: Sequence[TensorProto] = (),
) -> ModelProto:
    """A model of x (2, 3) and a condition c that yields y."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", 1, [2, 3]), helper.make_tensor_value_info("c", TensorProto.BOOL, [])],
        [helper.make_tensor_value_info("y", 1, ["a", "b"])],
        tensors,
    )
    made = helper.make_model(graph, opset_imports=imports, functions=functions)
    made.ir_version = 10
    return made


def node(op_type: str, inputs: str = "x", outputs: str = "y", **attributes: object) -> NodeProto:
    return helper.make_node(op_type, inputs.split(), outputs.split(), **attributes)


def function(name: str, *nodes: NodeProto, inputs: str = "a", domain: str = "local") -> FunctionProto:
    return helper.make_function(domain, name, inputs.split(), ["b"], nodes, [OPSET, LOCAL])


def call(name: str, inputs: str = "x", outputs: str = "y") -> NodeProto:
    return node(name, inputs, outputs, domain="local")


def axes_of(tensor: TensorProto) -> ModelProto:
    tensor.name = "axes"
    return model(node("ReduceMax", "x axes"), tensors=[tensor])


def nested(depth: int) -> ModelProto:
    made = model()
    graph = made.graph
    for level in range(depth):
        outer = graph.node.add(op_type="If", input=["c"], output=[f"y{level}" if level else "y"])
        other = outer.attribute.add(name="else_branch", type=AttributeProto.GRAPH).g
        other.name = "e"
        other.output.add(name=f"e{level}")
        other.node.add(op_type="Identity", input=["x"], output=[f"e{level}"])
        graph = outer.attribute.add(name="then_branch", type=AttributeProto.GRAPH).g
        graph.name = "t"
        graph.output.add(name=f"y{level + 1}")
    graph.node.add(op_type="ReduceMax", input=["x"], output=[f"y{depth}"])
    return made


def not_utf8() -> ModelProto:
    data = model(node("ReduceMax", "NAME")).SerializeToString()
    return ModelProto.FromString(data.replace(b"NAME", b"\xff\xfe\xff\xfe"))


def untyped() -> ModelProto:
    made = model(node("ReduceMax"), imports=OPSET_13)
    made.graph.node[0].attribute.add(name="axes").ints.append(1)
    return made


def twice(op_type: str = "ReduceMax") -> ModelProto:
    made = model(node(op_type, keepdims=1))
    made.graph.node[0].attribute.append(helper.make_attribute("keepdims", 0))
    return made


def null_branches() -> ModelProto:
    made = model(node("If", "c"))
    for name in ("then_branch", "else_branch"):
        made.graph.node[0].attribute.add(name=name, type=AttributeProto.GRAPH)
    return made


def chain(length: int) -> ModelProto:
    functions = [function(f"f{index}", call(f"f{index + 1}", "a", "b")) for index in range(length)]
    return model(call("f0"), functions=[*functions, function(f"f{length}", node("ReduceMax", "a", "b"))])


def bomb(levels: int) -> ModelProto:
    functions = [
        function(f"f{index}", call(f"f{index + 1}", "a", "t"), call(f"f{index + 1}", "t", "b"))
        for index in range(levels)
    ]
    return model(call("f0"), functions=[*functions, function(f"f{levels}", node("ReduceMax", "a", "b"))])


def external() -> ModelProto:
    tensor = TensorProto(data_type=TensorProto.INT64, dims=[1], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="/etc/passwd")
    return axes_of(tensor)


INT64 = TensorProto.INT64
MUTUAL = (function("f", call("h", "a", "b")), function("h", call("f", "a", "b")))

HOSTILE: dict[str, Callable[[], ModelProto]] = {
    "an empty message": ModelProto,
    "5,000 nested subgraphs": lambda: nested(5000),
    "60 nested subgraphs": lambda: nested(60),
    # Enough of each to tell what takes time by their square, and few enough to be copied at once.
    "twenty thousand imports": lambda: model(
        node("ReduceMax"), imports=[helper.make_opsetid("", index % 30) for index in range(MANY // 5)]
    ),
    "an opset without end": lambda: model(node("ReduceMax"), imports=[helper.make_opsetid("", 2**62)]),
    "an operator with a long name": lambda: model(node("N" * LONG)),
    "an unknown operator in a long name": lambda: model(node("Nope", name="n" * LONG)),
    "a long name that nothing defines": lambda: model(node("ReduceMax", "n" * LONG)),
    "names that are not UTF-8": not_utf8,
    "a recursive function": lambda: model(call("f"), functions=[function("f", call("f", "a", "b"))]),
    "mutually recursive functions": lambda: model(call("f"), functions=MUTUAL),
    "a chain of 5,000 functions": lambda: chain(5000),
    "functions that call functions twice": lambda: bomb(40),
    "a function that shadows an operator": lambda: model(
        node("ReduceMax"), functions=[function("ReduceMax", node("Neg", "a", "b"), domain="")]
    ),
    "a cycle": lambda: model(node("Abs", "z"), node("ReduceMax", "y axes", "z")),
    "axes in a cycle": lambda: model(node("Identity", "b", "a"), node("Identity", "a", "b"), node("ReduceMax", "x a")),
    "axes made of themselves": lambda: model(node("Add", "a a", "a"), node("ReduceMax", "x a")),
    "a name defined twice": lambda: model(node("Abs"), node("ReduceMax")),
    "axes of 2^40 elements": lambda: axes_of(TensorProto(data_type=INT64, dims=[2**40])),
    "axes of 2^80 elements": lambda: axes_of(TensorProto(data_type=INT64, dims=[2**40, 2**40])),
    "axes of a negative number of elements": lambda: axes_of(TensorProto(data_type=INT64, dims=[-1])),
    "weights of 2^80 elements": lambda: model(
        node("ReduceMax"), tensors=[TensorProto(name="w", data_type=1, dims=[2**20] * 4)]
    ),
    "axes cut short": lambda: axes_of(TensorProto(data_type=INT64, dims=[1], raw_data=b"abc")),
    "more axes than stated": lambda: axes_of(TensorProto(data_type=INT64, dims=[1], raw_data=bytes(16))),
    "axes in segments": lambda: axes_of(
        TensorProto(data_type=INT64, dims=[1], int64_data=[0], segment=TensorProto.Segment(begin=0, end=1))
    ),
    "axes that are floats": lambda: axes_of(helper.make_tensor("a", 1, [1], [0.0])),
    "axes that are text": lambda: axes_of(TensorProto(data_type=8, dims=[1], string_data=[b"abc"])),
    "axes of no type": lambda: axes_of(TensorProto(dims=[1])),
    "axes of an unknown type": lambda: axes_of(TensorProto(data_type=99, dims=[1], raw_data=b"a")),
    "axes in /etc/passwd": external,
    "axes that name a dimension twice": lambda: axes_of(helper.make_tensor("a", INT64, [2], [1, 1])),
    "axes out of range": lambda: axes_of(helper.make_tensor("a", INT64, [1], [7])),
    "a text for axes": lambda: model(node("ReduceMax", axes="no"), imports=OPSET_13),
    "a hundred thousand axes": lambda: model(node("ReduceMax", axes=list(range(MANY))), imports=OPSET_13),
    "axes beyond 64 bits": lambda: model(node("ReduceMax", axes=[2**62, -(2**62)]), imports=OPSET_13),
    "a float for keepdims": lambda: model(node("ReduceMax", keepdims=1.5)),
    "axes without an attribute type": untyped,
    "an attribute twice": twice,
    "no outputs": lambda: model(node("ReduceMax", "x", "")),
    "no inputs": lambda: model(node("ReduceMax", "", "y")),
    "a Constant without a value": lambda: model(node("Constant", "", "a"), node("ReduceMax", "x a")),
    "an If without branches": lambda: model(node("If", "c")),
    "an If with branches of nothing": null_branches,
    "a Loop without a body": lambda: model(helper.make_node("Loop", ["", ""], ["y"])),
    "a Cast to an unknown type": lambda: model(node("Cast", "x", "z", to=99), node("ReduceMax", "z")),
}
