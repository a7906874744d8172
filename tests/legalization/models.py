"""Small models around one Reduce node, and what numpy says it yields."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto, TensorProto, helper, parser

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
    """Writes a case in ONNX text."""

    def __init__(self, case: Case) -> None:
        self.case = case
        number = helper.np_dtype_to_tensor_dtype(np.dtype(case.dtype))
        self.kind = TensorProto.DataType.Name(number).lower()
        self.held: list[str] = []

    def model(self) -> ModelProto:
        case = self.case
        nodes, functions = getattr(self, "_" + case.place.replace(" ", "_").lower())(), ""
        imports = [helper.make_opsetid("", case.opset)]
        if "function" in case.place:
            imports.append(helper.make_opsetid("local", 1))
            functions = self._function_body()
        versions = ", ".join(f'"{each.domain}": {each.version}' for each in imports)
        ir_version = max(8 if functions else 4, helper.find_min_ir_version_for(imports, True))
        held = f" <{', '.join(self.held)}>" if self.held else ""
        return parser.parse_model(
            f"<ir_version: {ir_version}, opset_import: [{versions}]> "
            f"g ({self._data('x')}) => ({self._result('y')}){held} {{ {nodes} }} {functions}"
        )

    def _data(self, name: str) -> str:
        return self._value(name, [f"d{axis}" for axis in range(len(self.case.shape))])

    def _result(self, name: str) -> str:
        return self._value(name, [f"r{axis}" for axis in range(self.case.rank())])

    def _value(self, name: str, sizes: Sequence[str]) -> str:
        shape = f"[{', '.join(sizes)}]" if sizes else ""
        return f"{self.kind}{shape} {name}"

    def _reduce(self, x: str, y: str, suffix: str = "") -> str:
        """The node, behind a Constant where its axes are one."""
        case = self.case
        refers, name = case.place == "function with references", f"the_axes{suffix}"
        said = [("keepdims", "int", 1 if refers else case.keepdims), ("noop_with_empty_axes", "int", case.noop)]
        operands, before, kind, axes = x, "", FORMS[case.form][0], case.given_axes
        if kind == "name":
            operands = f'{x}, ""'
        elif axes is not None and not axes_are_input(case.op_type, case.opset):
            said.append(("axes", "ints", list(axes)))
        elif axes is not None:
            operands = f"{x}, {name}"
            value = f"int64[{len(axes)}] {{{', '.join(map(str, axes))}}}"
            if refers or kind == "value_ints":
                before = f"{name} = Constant <value_ints: ints = {'@axes' if refers else list(axes)}> () "
            elif kind == "value" or x == "a":  # functions have no initializers
                before = f"{name} = Constant <value = {value}> () "
            else:
                self.held.append(value.replace("{", f"{name} = {{"))
        attributes = ", ".join(
            f"{attribute}: {of} = {f'@{attribute}' if refers else given}"
            for attribute, of, given in said
            if given is not None
        )
        return f"{before}[reduce{suffix}] {y} = {case.op_type} {f'<{attributes}> ' if attributes else ''}({operands})"

    def _main(self) -> str:
        return self._reduce("x", "y")

    def _choice(self, output: str, then: str, nodes: str, suffix: str = "") -> str:
        """An If whose branches do the same: the nodes given, and a Reduce of its own."""
        other = self._reduce("x", f"y_else{suffix}", f"_else{suffix}")
        return (
            f"[choose{suffix}] {output} = If (c) <then_branch = then () => ({self._result(then)}) {{ {nodes} }}, "
            f"else_branch = else () => ({self._result(f'y_else{suffix}')}) {{ {other} }}>"
        )

    def _if(self) -> str:
        self.held.append("bool c = {1}")
        return self._choice("y", "y_then", self._reduce("x", "y_then"))

    def _nested_if(self) -> str:
        self.held.append("bool c = {1}")
        inner = self._choice("y_inner", "y_then", self._reduce("x", "y_then"), "_inner")
        return self._choice("y", "y_inner", inner)

    def _function_in_if(self) -> str:
        self.held.append("bool c = {1}")
        return self._choice("y", "y_then", self._call("y_then"))

    def _loop(self) -> str:
        start = self._value("start", ["1"] * self.case.rank())
        self.held += ["int64 count = {2}", f"{start} = {{0}}"]
        return (
            f"[loop] y = Loop (count, , start) <body = body (int64 step, bool go, {self._result('before')}) => "
            f"(bool go_on, {self._result('y_step')}) {{ {self._reduce('x', 'y_step')} go_on = Identity (go) }}>"
        )

    def _scan(self) -> str:
        """One step over a leading dimension of size 1, dropped again behind the Scan."""
        attribute, operand = " <axes = [0]>", ""
        if self.case.opset >= 13:
            self.held.append("int64[1] zero = {0}")
            attribute, operand = "", ", zero"
        body = f"({self._data('slice')}) => ({self._result('y_slice')}) {{ {self._reduce('slice', 'y_slice')} }}"
        return (
            f"stacked = Unsqueeze{attribute} (x{operand}) "
            f"[scan] y_stacked = Scan <num_scan_inputs = 1, body = body {body}> (stacked) "
            f"y = Squeeze{attribute} (y_stacked{operand})"
        )

    def _function(self) -> str:
        return self._call("y")

    _function_with_references = _function

    def _referred(self) -> dict[str, object]:
        """The attributes of the function, with what the call gives them."""
        case = self.case
        if case.place != "function with references":
            return {}
        axes = None if case.given_axes is None or FORMS[case.form][0] == "name" else list(case.given_axes)
        keepdims = 1 if case.keepdims is None else case.keepdims
        given = {"keepdims: int": keepdims, "noop_with_empty_axes: int": case.noop, "axes: ints": axes}
        return {name: value for name, value in given.items() if value is not None}

    def _call(self, output: str) -> str:
        given = ", ".join(f"{name} = {value}" for name, value in self._referred().items())
        return f"[call] {output} = local.f {f'<{given}> ' if given else ''}(x)"

    def _function_body(self) -> str:
        names = ", ".join(name.partition(":")[0] for name in self._referred())
        attributes = f"<{names}> " if names else ""
        return (
            f'<domain: "local", opset_import: ["": {self.case.opset}]> f {attributes}(a) => (b) '
            f"{{ {self._reduce('a', 'b')} }}"
        )
