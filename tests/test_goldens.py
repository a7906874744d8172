"""The comparison of models up to names, which decides whether a change of the engine changed a result."""

from __future__ import annotations

import pytest
from onnx import ModelProto, parser

from tools.goldens import meaning

_TEXT = """<ir_version: 8, opset_import: ["": 17]> g (bool c, float[2] x) => (float[2] y) <float[2] w = {1, 2}>
{
  a = Neg(x)
  b = Add(x, w)
  t = If(c) <then_branch = one () => (p) { p = Sub(a, b) }, else_branch = two () => (q) { q = Abs(a) }>
  y = Relu(t)
}"""


def _model(*changes: tuple[str, str]) -> ModelProto:
    text = _TEXT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return parser.parse_model(text)


@pytest.mark.parametrize(
    "changes",
    [
        (("a = ", "other = "), ("Sub(a", "Sub(other"), ("Abs(a", "Abs(other")),
        (("w = {", "weight = {"), ("(x, w)", "(x, weight)")),
        (("a = Neg(x)\n  b = Add(x, w)", "b = Add(x, w)\n  a = Neg(x)"),),
        (("(p) { p =", "(r) { r ="),),
        (("y = Relu", "unused = Exp(x)\n  y = Relu"),),
    ],
    ids=["a value", "an initializer", "the order of nodes", "a value of a branch", "a node that nothing reads"],
)
def test_names_and_order_do_not_count(changes: tuple[tuple[str, str], ...]) -> None:
    assert meaning(_model(*changes)) == meaning(_model())


@pytest.mark.parametrize(
    "changes",
    [
        (("Neg", "Exp"),),
        (("Add(x, w)", "Add(w, x)"),),
        (("{1, 2}", "{1, 3}"),),
        (("Abs(a)", "Abs(b)"),),
        (('"": 17', '"": 18'),),
        (("float[2] y", "float[N] y"),),
    ],
    ids=["an operator", "the order of inputs", "a constant", "an outer value", "the opset version", "a stated shape"],
)
def test_what_is_computed_counts(changes: tuple[tuple[str, str], ...]) -> None:
    assert meaning(_model(*changes)) != meaning(_model())
