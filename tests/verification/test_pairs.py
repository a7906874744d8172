"""Pairs of models that differ in what no random run shows, or agree though they are written otherwise."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, helper, numpy_helper

from reducelower.verification import verify

from .models import model

X = "float[N, 4] x"
PLAIN = "g (float[N, 4] x) => (float[N, 4] y) {{ {0} }}"
MASKED = "g (bool[N, 4] m, float[N, 4] x) => (float[N, 4] y) <float low = {{-1000000000}}> {{ {0} }}"
WHOLE = "g (int32[N, 4] x) => (int32[N, 4] y) <int32 two = {{2}}, int32 zero = {{0}}> {{ {0} }}"
BYTES = "g (int8[N, 4] x) => (int8[N, 4] y) {{ {0} }}"
IF = (
    "g ({2}float[N, 4] x) => (float[N, 4] y) <float limit = {{1000}}> {{ {3} "
    "y = If (c) <then_branch = t () => (float[N, 4] p) {{ {0} }}, else_branch = e () => (float[N, 4] q) {{ {1} }}> }}"
)
ON_A_BOOL = ("bool k, ", "c = Identity (k)")
BEHIND_A_THRESHOLD = ("", "top = ReduceMax <keepdims = 0> (x)  c = Greater (top, limit)")
QUANTIZED = (
    "g (float[N, 3, 32, 32] x) => (float[N, 3, 32, 32] y) <float s = {{{0}}}, uint8 z = {{{1}}}> "
    "{{ q = QuantizeLinear (x, s, z)  y = DequantizeLinear (q, s, z) }}"
)
TABLE = "g (int64[N] i) => (float[N, 2] y) <float[12, 2] table = {{{0}}}> {{ y = Gather (table, i) }}"
LOOP = (
    "g (float[4] x) => (float[4] y) <int64 n = {{{0}}}, bool go = {{1}}> {{ y = Loop (n, go, x) <body = "
    "b (int64 i, bool c, float[4] v) => (bool d, float[4] w) {{ d = Identity (c)  w = {1} }}> }}"
)
ROWS = [float(at) for at in range(24)]


def plain(body: str) -> ModelProto:
    return model(PLAIN.format(body))


def branches(then: str, other: str, kind: tuple[str, str]) -> ModelProto:
    return model(IF.format(then, other, *kind))


def table(rows: list[float]) -> ModelProto:
    return model(TABLE.format(", ".join(map(str, rows))))


def with_default(is_input: bool, value: float = 2.0) -> ModelProto:
    inputs = "float[N] x, float[1] b" if is_input else "float[N] x"
    given = model(f"g ({inputs}) => (float[N] y) {{ y = Add (x, b) }}")
    given.graph.initializer.append(numpy_helper.from_array(np.array([value], np.float32), "b"))
    return given


DIFFERENT: dict[str, tuple[ModelProto, ModelProto]] = {
    "negated beside a mask value": (
        model(MASKED.format("y = Where (m, x, low)")),
        model(MASKED.format("n = Neg (x)  y = Where (m, n, low)")),
    ),
    "scores beside boxes": (
        model("g (float[N, 4] x) => (float[N, 5] y) <float k = {10000}> "
              "{ b = Mul (x, k)  s = ReduceMax <axes = [1]> (x)  t = Sigmoid (s)  y = Concat <axis = 1> (b, t) }", 17),
        model("g (float[N, 4] x) => (float[N, 5] y) <float k = {10000}> "
              "{ b = Mul (x, k)  s = ReduceMax <axes = [1]> (x)  t = Tanh (s)  y = Concat <axis = 1> (b, t) }", 17),
    ),
    "zero point off by one": (model(QUANTIZED.format(0.05, 128)), model(QUANTIZED.format(0.05, 129))),
    "zero point off by fifteen": (model(QUANTIZED.format(0.05, 128)), model(QUANTIZED.format(0.05, 113))),
    "scale off by a tenth": (model(QUANTIZED.format(0.05, 128)), model(QUANTIZED.format(0.055, 128))),
    "else branch on a bool": (
        branches("p = Abs (x)", "q = Neg (x)", ON_A_BOOL), branches("p = Abs (x)", "q = Exp (x)", ON_A_BOOL)
    ),
    "then branch on a bool": (
        branches("p = Abs (x)", "q = Neg (x)", ON_A_BOOL), branches("p = Exp (x)", "q = Neg (x)", ON_A_BOOL)
    ),
    "branch behind a threshold": (
        branches("p = Abs (x)", "q = Neg (x)", BEHIND_A_THRESHOLD),
        branches("p = Exp (x)", "q = Neg (x)", BEHIND_A_THRESHOLD),
    ),
    "other threshold": (
        branches("p = Abs (x)", "q = Neg (x)", BEHIND_A_THRESHOLD),
        branches("p = Abs (x)", "q = Neg (x)", ("", BEHIND_A_THRESHOLD[1].replace("Greater", "GreaterOrEqual"))),
    ),
    "Relu for Relu6": (
        model("g (float[N] x) => (float[N] y) <float a = {0}, float b = {6}> { y = Clip (x, a, b) }"),
        model("g (float[N] x) => (float[N] y) { y = Relu (x) }"),
    ),
    "missing Clip": (
        model("g (float[N] x) => (float[N] y) <float a = {-10}, float b = {10}> { t = Tan (x)  y = Clip (t, a, b) }"),
        model("g (float[N] x) => (float[N] y) { y = Tan (x) }"),
    ),
    "other bound of a Clip": (
        model("g (float[N] x) => (float[N] y) <float a = {-10}, float b = {200}> { y = Clip (x, a, b) }"),
        model("g (float[N] x) => (float[N] y) <float a = {-10}, float b = {201}> { y = Clip (x, a, b) }"),
    ),
    "NaN replaced": (
        plain("y = Identity (x)"),
        model("g (float[N, 4] x) => (float[N, 4] y) <float o = {0}> { n = IsNaN (x)  y = Where (n, o, x) }"),
    ),
    "infinity replaced": (
        plain("y = Identity (x)"),
        model("g (float[N, 4] x) => (float[N, 4] y) <float o = {0}> { n = IsInf (x)  y = Where (n, o, x) }", 20),
    ),
    "Abs for Identity": (model(WHOLE.format("y = Identity (x)")), model(WHOLE.format("y = Abs (x)"))),
    "division rounded down": (
        model(WHOLE.format("y = Div (x, two)")),
        model(WHOLE.format("r = Mod (x, two)  s = Sub (x, r)  y = Div (s, two)")),
    ),
    "remainder of other sign": (
        model(WHOLE.format("y = Mod <fmod = 1> (x, two)")), model(WHOLE.format("y = Mod <fmod = 0> (x, two)")),
    ),
    "overflow of eight bits": (
        model(BYTES.format("w = Cast <to = 6> (x)  d = Add (w, w)  y = Cast <to = 3> (d)")),
        model("g (int8[N, 4] x) => (int8[N, 4] y) <int32 a = {-128}, int32 b = {127}> "
              "{ w = Cast <to = 6> (x)  d = Add (w, w)  c = Clip (d, a, b)  y = Cast <to = 3> (c) }"),
    ),
    "row above nine": (table(ROWS), table([*ROWS[:22], 7.0, 7.0])),
    "trip count": (model(LOOP.format(3, "Mul (v, v)")), model(LOOP.format(4, "Mul (v, v)"))),
    "body of a loop": (model(LOOP.format(3, "Exp (v)")), model(LOOP.format(3, "Tanh (v)"))),
    "empty inputs": (
        model("g (float[N] x) => (float[1] y) { y = ReduceProd (x) }"),
        model("g (float[N] x) => (float[1] y) <float[1] a = {1e-30}> "
              "{ s = ReduceProd (x)  m = ReduceSum (x)  l = Shape (x)  o = Cast <to = 1> (l)  z = Min (o, a)"
              "  q = Div (z, a)  y = Mul (s, q) }"),
    ),
    "a default that is lost": (with_default(True), with_default(False)),
    "another default": (with_default(True), with_default(True, 3.0)),
    "ties rounded away from zero": (
        plain("y = Round (x)"),
        model("g (float[N, 4] x) => (float[N, 4] y) <float h = {0.5}> "
              "{ a = Abs (x)  b = Add (a, h)  c = Floor (b)  s = Sign (x)  y = Mul (c, s) }"),
    ),
    "strictly greater": (
        model("g (float[N] x) => (bool[N] y) <float k = {7}> { y = Greater (x, k) }"),
        model("g (float[N] x) => (bool[N] y) <float k = {7}> { y = GreaterOrEqual (x, k) }"),
    ),
    "swapped operands": (
        model("g (float[N] x, float[N] z) => (float[N] y) { y = Sub (x, z) }"),
        model("g (float[N] x, float[N] z) => (float[N] y) { y = Sub (z, x) }"),
    ),
    "another axis of a square": (
        model("g (float[4, 4] x) => (float[4, 4] y) { y = Softmax <axis = 0> (x) }"),
        model("g (float[4, 4] x) => (float[4, 4] y) { y = Softmax <axis = 1> (x) }"),
    ),
    "slope of a leak": (plain("y = LeakyRelu <alpha = 0.01> (x)"), plain("y = LeakyRelu <alpha = 0.011> (x)")),
    "a sum in the place of one more": (plain("y = Softplus (x)"), plain("e = Exp (x)  p = Add (e, e)  y = Log (p)")),
    "Elu without its lower side": (plain("y = Elu (x)"), plain("y = Relu (x)")),
    "sign of zero divided": (
        model("g (float[N] x, float[N] z) => (float[N] y) { y = Div (x, z) }"),
        model("g (float[N] x, float[N] z) => (float[N] y) { a = Abs (z)  y = Div (x, a) }"),
    ),
    "through float16": (plain("y = Identity (x)"), plain("h = Cast <to = 10> (x)  y = Cast <to = 1> (h)")),
    "int64 through float": (
        model("g (int64[N] x) => (int64[N] y) { y = Identity (x) }"),
        model("g (int64[N] x) => (int64[N] y) { f = Cast <to = 1> (x)  y = Cast <to = 7> (f) }"),
    ),
    "unsigned taken for signed": (
        model("g (uint8[N] x) => (int32[N] y) { y = Cast <to = 6> (x) }"),
        model("g (uint8[N] x) => (int32[N] y) { s = Cast <to = 3> (x)  y = Cast <to = 6> (s) }"),
    ),
    "or for and": (
        model("g (bool[N] a, bool[N] b) => (bool[N] y) { y = And (a, b) }"),
        model("g (bool[N] a, bool[N] b) => (bool[N] y) { y = Or (a, b) }"),
    ),
    "negative indices refused": (
        table(ROWS),
        model("g (int64[N] i) => (float[N, 2] y) <float[12, 2] table = {" + ", ".join(map(str, ROWS)) + "}> "
              "{ a = Abs (i)  y = Gather (table, a) }"),
    ),
}  # fmt: skip


SAME: dict[str, tuple[ModelProto, ModelProto]] = {
    "operands of a sum": (
        model("g (float[N] x, float[N] z) => (float[N] y) { y = Add (x, z) }"),
        model("g (float[N] x, float[N] z) => (float[N] y) { y = Add (z, x) }"),
    ),
    "a constant spelled otherwise": (
        model("g (float[N] x) => (float[N] y) <float k = {3}> { y = Mul (x, k) }"),
        model("g (float[N] x) => (float[N] y) { k = Constant <value_float = 3.0> ()  y = Mul (k, x) }"),
    ),
    "an attribute that is the default": (plain("y = Softmax (x)"), plain("y = Softmax <axis = -1> (x)")),
    "other names": (plain("a = Abs (x)  b = Exp (a)  y = Neg (b)"), plain("b = Abs (x)  a = Exp (b)  y = Neg (a)")),
    "Relu as a maximum": (
        plain("y = Relu (x)"),
        model("g (float[N, 4] x) => (float[N, 4] y) <float o = {0}> { y = Max (x, o) }"),
    ),
    "a clip after another": (
        model("g (float[N] x) => (float[N] y) <float a = {0}, float b = {6}> { r = Relu (x)  y = Clip (r, a, b) }"),
        model("g (float[N] x) => (float[N] y) <float a = {0}, float b = {6}> { y = Clip (x, a, b) }"),
    ),
    "a sum by halves": (
        model("g (float[8] x) => (float[1] y) { y = ReduceSum (x) }"),
        model("g (float[8] x) => (float[1] y) <int64[2] s = {4, 4}> "
              "{ a, b = Split <axis = 0> (x, s)  c = ReduceSum (a)  d = ReduceSum (b)  y = Add (c, d) }"),
    ),
    "branches of an If exchanged with its condition": (
        branches("p = Abs (x)", "q = Neg (x)", ON_A_BOOL),
        branches("p = Neg (x)", "q = Abs (x)", ("bool k, ", "c = Not (k)")),
    ),
    "softmax by its definition": (
        plain("y = Softmax (x)"),
        model("g (float[N, 4] x) => (float[N, 4] y) <int64[1] l = {1}> "
              "{ m = ReduceMax (x, l)  d = Sub (x, m)  e = Exp (d)  s = ReduceSum (e, l)  y = Div (e, s) }"),
    ),
    "a shape that is known": (
        model("g (float[3, 4] x) => (float[3, 4] y) { s = Shape (x)  f = Cast <to = 1> (s)  "
              "p = ReduceProd <keepdims = 0> (f)  y = Mul (x, p) }"),
        model("g (float[3, 4] x) => (float[3, 4] y) <float p = {12}> { y = Mul (x, p) }"),
    ),
    "a loop unrolled": (
        model(LOOP.format(2, "Tanh (v)")), model("g (float[4] x) => (float[4] y) { a = Tanh (x)  y = Tanh (a) }"),
    ),
    "newer versions": (
        model(PLAIN.format("a = Relu (x)  y = Add (a, x)"), 13),
        model(PLAIN.format("a = Relu (x)  y = Add (a, x)"), 21),
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", DIFFERENT)
def test_what_differs_is_different(what: str) -> None:
    assert verify(*DIFFERENT[what]).verdict == "different"


@pytest.mark.parametrize("what", SAME)
def test_what_is_the_same_is_equivalent(what: str) -> None:
    found = verify(*SAME[what])
    assert found.verdict == "equivalent", str(found)


@pytest.mark.parametrize("what", DIFFERENT)
def test_every_model_is_equivalent_to_itself(what: str) -> None:
    for given in DIFFERENT[what]:
        found = verify(given, given)
        assert (found.verdict, found.sites) == ("equivalent", ()), str(found)


UNSEEN = {
    "all NaN": "g (float[N] x) => (float[N] y) <float k = {0}> { a = Mul (x, k)  y = Div (a, a) }",
    "all infinite": "g (float[N] x) => (float[N] y) <float k = {0}> "
    "{ a = Mul (x, k)  b = Abs (a)  e = Exp (b)  y = Div (e, k) }",
    "always empty": "g (float[N] x) => (float[0] y) <int64[1] o = {0}> { y = Slice (x, o, o) }",
    "random": "g (float[N] x) => (float[N] y) { y = RandomNormalLike (x) }",
}


@pytest.mark.parametrize("what", UNSEEN)
def test_where_nothing_is_compared_nothing_is_shown(what: str) -> None:
    given = model(UNSEEN[what])
    # As far as runtimes draw numbers one after the other, another draw before changes those that follow.
    other = model(UNSEEN[what].replace("{ y = Random", "{ q = RandomNormalLike (x)  y = Random"))
    found = verify(given, other)
    assert (found.verdict, found.equivalent) == ("not shown", False)
    assert "output 'y'" in found.unseen[0]


def test_five_thousand_alike_regions_are_one_check() -> None:
    count = 5000
    bodies = ("Relu", []), ("Max", ["zero"])
    before, after = (model(f"g (float[4] v0) => (float[4] v{count}) <float zero = {{0}}> {{ }}") for _ in bodies)
    for given, (op_type, more) in zip((before, after), bodies, strict=True):
        given.graph.node.extend(helper.make_node(op_type, [f"v{at}", *more], [f"v{at + 1}"]) for at in range(count))
    found = verify(before, after)
    assert found.verdict == "equivalent"
    assert [len(site.nodes) for site in found.sites] == [count]


def test_a_fault_deep_inside_is_told_where_it_stands() -> None:
    chain = "a = Abs (x)  b = Exp (a)  c = {0} (b)  d = Relu (c)  e = Sigmoid (d)  y = Neg (e)"
    found = verify(plain(chain.format("Sqrt")), plain(chain.format("Log")))
    (region,) = [site for site in found.sites if not site.ok]
    assert (region.op_type, found.verdict) == ("Sqrt", "different")
