"""Small models around one Reduce node, and what numpy says it yields."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

OPERATORS = (
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSum",
    "ReduceSumSquare",
)

SHAPE = (2, 3, 4)

FORMS: dict[str, tuple[str, tuple[int, ...] | None]] = {
    "absent": ("absent", None),
    "empty name": ("name", None),
    "empty": ("given", ()),
    "one": ("given", (1,)),
    "several": ("given", (0, 2)),
    "all": ("given", (0, 1, 2)),
    "negative": ("given", (-1,)),
    "mixed": ("given", (0, -2)),
    "Constant value": ("value", (1, 2)),
    "Constant value_ints": ("value_ints", (2, 0)),
    "outer": ("outer", (1,)),
}
"""How the axes are handed over, and what they are (None: not at all)."""

PLACES = ("main", "If", "nested If", "Loop", "Scan", "function", "function with references", "function in If")


def axes_are_input(op_type: str, opset: int) -> bool:
    """Since which opset the axes are an input: the operator pages of ReduceSum (13) and of the others (18)."""
    return opset >= (13 if op_type == "ReduceSum" else 18)


def reduced(
    op_type: str, data: np.ndarray, axes: Sequence[int] | None, keepdims: int | None, noop: int | None
) -> np.ndarray:
    """What the operator pages say, in numpy: composites in double, back to the data's element type."""
    keep = keepdims is None or bool(keepdims)
    nothing = not axes and bool(noop)
    over = tuple(axes) if axes else (() if nothing else tuple(range(data.ndim)))
    exact = data.astype(np.int64) if data.dtype.kind in "iub" else data.astype(np.float64)
    real = data.astype(np.float64)
    how = {"axis": over, "keepdims": keep}
    with np.errstate(all="ignore"):
        if op_type == "ReduceL1":
            result = np.abs(exact).sum(**how)
        elif op_type == "ReduceL2":
            result = np.sqrt((real * real).sum(**how))
        elif op_type == "ReduceLogSum":
            result = np.log(real.sum(**how))
        elif op_type == "ReduceLogSumExp":
            result = np.log(np.exp(real).sum(**how)) if not nothing else real
        elif op_type == "ReduceMax":
            result = exact.max(**how)
        elif op_type == "ReduceMin":
            result = exact.min(**how)
        elif op_type == "ReduceMean":
            result = real.mean(**how)
        elif op_type == "ReduceProd":
            result = exact.prod(**how)
        elif op_type == "ReduceSum":
            result = exact.sum(**how)
        else:
            result = (exact * exact).sum(**how)
    return np.asarray(result).astype(data.dtype)


def sample(dtype: type, shape: tuple[int, ...] = SHAPE, seed: int = 0) -> np.ndarray:
    """Values every operator takes: positive, small enough for float16 and for integers."""
    values = np.random.default_rng(seed).uniform(0.5, 2.5, shape)
    if np.dtype(dtype).kind == "b":
        return values > 1.5
    if np.dtype(dtype).kind in "iu":
        return np.ceil(values).astype(dtype)
    return values.astype(dtype)


@dataclass(frozen=True)
class Case:
    """One Reduce node and the place it stands in."""

    op_type: str
    opset: int
    form: str = "one"
    keepdims: int | None = None
    noop: int | None = None
    dtype: type = np.float32
    place: str = "main"
    shape: tuple[int, ...] = SHAPE
    axes: tuple[int, ...] | None = None

    @property
    def given_axes(self) -> tuple[int, ...] | None:
        return self.axes if self.axes is not None else FORMS[self.form][1]

    def expected(self, data: np.ndarray) -> np.ndarray:
        return reduced(self.op_type, data, self.given_axes, self.keepdims, self.noop)

    def rank(self) -> int:
        """The number of dimensions of the result."""
        size = Case(self.op_type, self.opset, self.form, self.keepdims, self.noop, axes=self.axes)
        return size.expected(np.ones(tuple(max(1, length) for length in self.shape))).ndim

    def is_possible(self) -> bool:
        """Whether the opset version can say this at all."""
        as_input = axes_are_input(self.op_type, self.opset)
        kind = FORMS[self.form][0]
        if self.noop is not None and not as_input:
            return False
        if kind in ("name", "value", "value_ints", "outer") and not as_input:
            return False
        axes = self.given_axes
        return not (axes and min(axes) < 0 and self.opset < 11)

    def model(self) -> ModelProto:
        return _Builder(self).model()


class _Builder:
    def __init__(self, case: Case) -> None:
        self.case = case
        self.element_type = helper.np_dtype_to_tensor_dtype(np.dtype(case.dtype))
        self.inner_nodes: list[NodeProto] = []
        self.outer_nodes: list[NodeProto] = []
        self.initializers: list[TensorProto] = []
        self.functions = []

    def value(self, name: str, shape: object = None) -> object:
        return helper.make_tensor_value_info(name, self.element_type, shape)

    def model(self) -> ModelProto:
        case = self.case
        rank = case.rank()
        place = getattr(self, "_" + case.place.replace(" ", "_").lower())
        place(rank)
        symbols = [f"d{index}" for index in range(len(case.shape))]
        graph = helper.make_graph(
            self.outer_nodes,
            "g",
            [self.value("x", symbols)],
            [self.value("y", [f"r{index}" for index in range(rank)])],
            self.initializers,
        )
        imports = [helper.make_opsetid("", case.opset)]
        if self.functions:
            imports.append(helper.make_opsetid("local", 1))
        model = helper.make_model(graph, opset_imports=imports, functions=self.functions)
        model.ir_version = max(8 if self.functions else 4, helper.find_min_ir_version_for(imports, True))
        return model

    def _reduce(
        self, x: str, y: str, *, suffix: str = "", reference: bool = False, in_function: bool = False
    ) -> list[NodeProto]:
        case = self.case
        nodes: list[NodeProto] = []
        node = helper.make_node(case.op_type, [x], [y], name=f"reduce{suffix}")
        name = f"the_axes{suffix}"
        axes, kind = case.given_axes, FORMS[case.form][0]
        if reference:
            for referred in ("keepdims", *(["noop_with_empty_axes"] if case.noop is not None else [])):
                node.attribute.add(name=referred, type=AttributeProto.INT, ref_attr_name=referred)
        else:
            if case.keepdims is not None:
                node.attribute.append(helper.make_attribute("keepdims", case.keepdims))
            if case.noop is not None:
                node.attribute.append(helper.make_attribute("noop_with_empty_axes", case.noop))
        if kind == "name":
            node.input.append("")
        elif axes is not None and not axes_are_input(case.op_type, case.opset):
            if reference:
                node.attribute.add(name="axes", type=AttributeProto.INTS, ref_attr_name="axes")
            else:
                node.attribute.append(helper.make_attribute("axes", list(axes), attr_type=AttributeProto.INTS))
        elif axes is not None:
            tensor = numpy_helper.from_array(np.array(axes, np.int64), name)
            node.input.append(name)
            if reference:
                constant = helper.make_node("Constant", [], [name])
                constant.attribute.add(name="value_ints", type=AttributeProto.INTS, ref_attr_name="axes")
                nodes.append(constant)
            elif kind == "value_ints":
                nodes.append(helper.make_node("Constant", [], [name], value_ints=list(axes)))
            elif kind == "value" or in_function:
                nodes.append(helper.make_node("Constant", [], [name], value=tensor))
            else:
                self.initializers.append(tensor)
        return [*nodes, node]

    def _main(self, rank: int) -> None:
        self.outer_nodes = self._reduce("x", "y")

    def _choice(self, output: str, rank: int, then_nodes: list[NodeProto], suffix: str) -> NodeProto:
        """An If whose branches do the same: the nodes given, and a Reduce of its own."""
        shape = [f"r{index}" for index in range(rank)]
        other = self._reduce("x", f"y_else{suffix}", suffix=f"_else{suffix}")
        then_output = then_nodes[-1].output[0]
        graphs = {
            "then_branch": helper.make_graph(then_nodes, "then", [], [self.value(then_output, shape)]),
            "else_branch": helper.make_graph(other, "else", [], [self.value(f"y_else{suffix}", shape)]),
        }
        return helper.make_node("If", ["c"], [output], name=f"choose{suffix}", **graphs)

    def _add_condition(self) -> None:
        self.initializers.append(_named(numpy_helper.from_array(np.array(True)), "c"))

    def _if(self, rank: int) -> None:
        self._add_condition()
        self.outer_nodes = [self._choice("y", rank, self._reduce("x", "y_then"), "")]

    def _nested_if(self, rank: int) -> None:
        self._add_condition()
        inner = self._choice("y_inner", rank, self._reduce("x", "y_then"), "_inner")
        self.outer_nodes = [self._choice("y", rank, [inner], "")]

    def _loop(self, rank: int) -> None:
        boolean = helper.make_tensor_value_info("go", TensorProto.BOOL, [])
        body = helper.make_graph(
            [*self._reduce("x", "y_step"), helper.make_node("Identity", ["go"], ["go_on"])],
            "body",
            [helper.make_tensor_value_info("step", TensorProto.INT64, []), boolean, self.value("y_before")],
            [helper.make_tensor_value_info("go_on", TensorProto.BOOL, []), self.value("y_step")],
        )
        start = numpy_helper.from_array(np.zeros([1] * rank, self.case.dtype), "start")
        self.initializers += [_named(numpy_helper.from_array(np.array(2, np.int64)), "count"), start]
        self.outer_nodes = [helper.make_node("Loop", ["count", "", "start"], ["y"], name="loop", body=body)]

    def _scan(self, rank: int) -> None:
        # One step over a leading dimension of size 1, dropped again behind the Scan.
        case = self.case
        symbols = [f"s{index}" for index in range(len(case.shape))]
        body = helper.make_graph(
            self._reduce("slice", "y_slice"),
            "body",
            [self.value("slice", symbols)],
            [self.value("y_slice", [f"q{index}" for index in range(rank)])],
        )
        zero = numpy_helper.from_array(np.array([0], np.int64), "zero")
        self.outer_nodes = []
        if case.opset >= 13:
            self.initializers.append(zero)
            self.outer_nodes.append(helper.make_node("Unsqueeze", ["x", "zero"], ["stacked"]))
        else:
            self.outer_nodes.append(helper.make_node("Unsqueeze", ["x"], ["stacked"], axes=[0]))
        self.outer_nodes.append(
            helper.make_node("Scan", ["stacked"], ["y_stacked"], name="scan", body=body, num_scan_inputs=1)
        )
        if case.opset >= 13:
            self.outer_nodes.append(helper.make_node("Squeeze", ["y_stacked", "zero"], ["y"]))
        else:
            self.outer_nodes.append(helper.make_node("Squeeze", ["y_stacked"], ["y"], axes=[0]))

    def _function_of(self, *, reference: bool) -> None:
        case = self.case
        attributes = []
        if reference:
            attributes = ["keepdims"]
            if case.noop is not None:
                attributes.append("noop_with_empty_axes")
            if case.given_axes is not None and FORMS[case.form][0] != "name":
                attributes.append("axes")
        nodes = self._reduce("a", "b", reference=reference, in_function=True)
        self.initializers = []
        self.functions = [
            helper.make_function(
                "local", "f", ["a"], ["b"], nodes, [helper.make_opsetid("", case.opset)], attributes=attributes
            )
        ]

    def _call(self, output: str) -> NodeProto:
        case = self.case
        node = helper.make_node("f", ["x"], [output], domain="local", name="call")
        names = set(self.functions[0].attribute)
        if "keepdims" in names:
            node.attribute.append(helper.make_attribute("keepdims", 1 if case.keepdims is None else case.keepdims))
        if "noop_with_empty_axes" in names:
            node.attribute.append(helper.make_attribute("noop_with_empty_axes", case.noop))
        if "axes" in names:
            node.attribute.append(helper.make_attribute("axes", list(case.given_axes), attr_type=AttributeProto.INTS))
        return node

    def _function(self, rank: int) -> None:
        self._function_of(reference=False)
        self.outer_nodes = [self._call("y")]

    def _function_with_references(self, rank: int) -> None:
        self._function_of(reference=True)
        self.outer_nodes = [self._call("y")]

    def _function_in_if(self, rank: int) -> None:
        self._function_of(reference=False)
        call = self._call("y_then")
        self._add_condition()
        self.outer_nodes = [self._choice("y", rank, [call], "")]


def _named(tensor: TensorProto, name: str) -> TensorProto:
    tensor.name = name
    return tensor


def operators_of(graph: GraphProto) -> set[str]:
    """Every operator type in a graph and the graphs inside it."""
    found = set()
    for node in graph.node:
        found.add(node.op_type)
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                found |= operators_of(attribute.g)
    return found
