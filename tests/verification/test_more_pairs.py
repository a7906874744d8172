"""More pairs of models, in tables: two bodies of one graph, which `verify` has to tell apart or to find the same."""

from __future__ import annotations

import pytest
from onnx import ModelProto, parser

from reducelower.verification import verify

from .models import model

# Signatures: inputs => outputs <initializers>, with what many bodies read.
FLOATS = "g (float[N, 4] x) => (float[N, 4] y) <float o = {0}, float i = {1}, float h = {0.5}, float two = {2}>"
TWO = "g (float[N, 4] x, float[N, 4] z) => (float[N, 4] y) <float o = {0}, float i = {1}>"
MASKED = "g (bool[N, 4] m, float[N, 4] x) => (float[N, 4] y) <float low = {-1000000000}, float o = {0}>"
TRUTHS = "g (float[N, 4] x, float[N, 4] z) => (bool[N, 4] y) <float k = {3}, float o = {0}>"
WHOLE = "g (int64[N, 4] x) => (int64[N, 4] y) <int64 o = {0}, int64 two = {2}, int64 m = {-3}, int64 big = {1000000}>"
SMALL = "g (int32[N, 4] x) => (int32[N, 4] y) <int32 two = {2}, int32 k = {65536}>"
BYTES = "g (uint8[N, 4] x) => (uint8[N, 4] y) <uint8 i = {1}, uint8 t = {200}>"
IMAGE = "g (float[N, 2, 6, 6] x) => (float[N, 2, A, B] y) <float s = {0.1}, uint8 z = {128}, uint8 v = {127}>"
SQUARE = "g (float[N, 4, 4] x) => (float[N, A, B] y) <int64[1] f = {1}, int64[1] l = {2}, int64[1] n = {-1}>"
COUNTED = ("g (float[N] x) => (float[K] y) <int64[1] o = {0}, int64[1] i = {1}, int64[1] n = {-1}, "
           "int64[1] all = {9223372036854775807}>")  # fmt: skip
INDEXED = ("g (float[3, 4] x, int64[N] i) => (float[A, B] y) <int64 k = {3}, int64 o = {0}, int64 top = {2}, "
           "int64 low = {-3}>")  # fmt: skip
ROWS = ("g (float[5, 4] x) => (float[A, B] y) <int64[2] r = {1, 3}, int64[2] q = {3, 1}, "
        "float[2, 4] u = {1, 2, 3, 4, 5, 6, 7, 8}>")  # fmt: skip
PICKED = "g (float[N, 5] x) => (float[N, 2] y, int64[N, 2] i) <int64[1] k = {2}>"
BRANCHED = "g (float[N, 4] x, float k) => (float[N, 4] y) <float t = {1000}>"
LOOPED = "g (float[4] x, int64 n) => (float[4] y) <bool go = {1}, bool stop = {0}, float h = {0.5}>"

DIFFERENT: dict[str, tuple[str, str, str]] = {
    # Masks and sentinels
    "mask value of another size": (MASKED, "y = Where (m, x, low)", "h = Add (low, low)  y = Where (m, x, h)"),
    "mask turned round": (MASKED, "y = Where (m, x, low)", "n = Not (m)  y = Where (n, x, low)"),
    "masked by product": (MASKED, "y = Where (m, x, o)", "f = Cast <to = 1> (m)  y = Mul (x, f)"),
    "mask added": (MASKED, "y = Where (m, x, low)", "a = Where (m, o, low)  y = Add (x, a)"),
    "small beside a sentinel": (
        MASKED, "t = Tanh (x)  y = Where (m, t, low)", "a = Tanh (x)  t = Mul (a, a)  y = Where (m, t, low)"
    ),
    # NaN, infinities, zeros
    "NaN through a maximum": (TWO, "y = Max (x, z)", "g = Greater (x, z)  y = Where (g, x, z)"),
    "Relu of NaN": (FLOATS, "y = Relu (x)", "p = Greater (x, o)  y = Where (p, x, o)"),
    "infinity less itself": (FLOATS, "y = Mul (x, o)", "a = IsNaN (x)  y = Where (a, x, o)"),
    "sign of zero": (FLOATS, "y = Reciprocal (x)", "a = Add (x, o)  y = Reciprocal (a)"),
    "NaN is not equal to itself": (TRUTHS, "y = Equal (x, x)", "g = Greater (x, x)  y = Not (g)"),
    "not less is not greater": (TRUTHS, "y = GreaterOrEqual (x, z)", "l = Less (x, z)  y = Not (l)"),
    "root of a square of what is negative": (FLOATS, "s = Mul (x, x)  y = Sqrt (s)", "y = Identity (x)"),
    "logarithm of a product": (
        TWO, "p = Mul (x, z)  y = Log (p)", "a = Log (x)  b = Log (z)  y = Add (a, b)"
    ),
    # Ranges of floats
    "squares that overflow": (FLOATS, "y = Abs (x)", "s = Mul (x, x)  y = Sqrt (s)"),
    "exponentials that overflow": (FLOATS, "y = Softplus (x)", "e = Exp (x)  p = Add (e, i)  y = Log (p)"),
    "a softmax without its maximum": (
        FLOATS, "y = Softmax <axis = 1> (x)",
        "e = Exp (x)  a = Constant <value_ints = [1]> ()  s = ReduceSum (e, a)  y = Div (e, s)",
    ),
    "an addend that small values lose": (FLOATS, "y = Identity (x)", "a = Add (x, i)  y = Sub (a, i)"),
    "through bfloat16": (FLOATS, "y = Identity (x)", "b = Cast <to = 16> (x)  y = Cast <to = 1> (b)"),
    "a bound no ordinary value reaches": (
        FLOATS, "y = Identity (x)", "c = Constant <value_float = 50000.0> ()  y = Min (x, c)"
    ),
    # Rounding
    "cut for rounded": (FLOATS, "y = Round (x)", "w = Cast <to = 7> (x)  y = Cast <to = 1> (w)"),
    "floor of negative values": (FLOATS, "y = Floor (x)", "w = Cast <to = 6> (x)  y = Cast <to = 1> (w)"),
    "a thousandth before a floor": (
        FLOATS, "y = Floor (x)", "k = Constant <value_float = 1.001> ()  m = Mul (x, k)  y = Floor (m)"
    ),
    "an offset before a floor": (
        FLOATS, "y = Floor (x)", "k = Constant <value_float = 0.001> ()  m = Add (x, k)  y = Floor (m)"
    ),
    "halves upwards": (FLOATS, "y = Round (x)", "a = Add (x, h)  y = Floor (a)"),
    "ceiling for floor and one": (FLOATS, "y = Ceil (x)", "f = Floor (x)  y = Add (f, i)"),
    # Integers
    "shifts of negative values": (WHOLE, "y = Div (x, two)", "f = Cast <to = 11> (x)  t = Cast <to = 11> (two)  "
                                  "q = Div (f, t)  g = Floor (q)  y = Cast <to = 7> (g)"),
    "remainder of a negative divisor": (WHOLE, "y = Mod (x, m)", "y = Mod <fmod = 1> (x, m)"),
    "a product that overflows": (SMALL, "y = Mul (x, k)", "w = Cast <to = 7> (x)  v = Cast <to = 7> (k)  "
                                 "p = Mul (w, v)  "
                                 "f = Cast <to = 11> (p)  a = Constant <value_float = 2147483647.0> ()  "
                                 "b = Cast <to = 11> (a)  c = Min (f, b)  y = Cast <to = 6> (c)"),
    "unsigned difference": (BYTES, "y = Sub (x, i)", "a = Cast <to = 6> (x)  b = Cast <to = 6> (i)  d = Sub (a, b)  "
                            "e = Abs (d)  y = Cast <to = 2> (e)"),
    "saturated for wrapped": (BYTES, "y = Add (x, t)", "a = Cast <to = 6> (x)  b = Cast <to = 6> (t)  c = Add (a, b)  "
                              "m = Constant <value_int = 255> ()  n = Cast <to = 6> (m)  d = Min (c, n)  "
                              "y = Cast <to = 2> (d)"),
    "int32 through float": (SMALL, "y = Identity (x)", "f = Cast <to = 1> (x)  y = Cast <to = 6> (f)"),
    "int64 through int32": (WHOLE, "y = Identity (x)", "s = Cast <to = 6> (x)  y = Cast <to = 7> (s)"),
    "a bound of integers": (WHOLE, "y = Identity (x)", "y = Min (x, big)"),
    "sign of zero as integer": (WHOLE, "y = Sign (x)", "g = Less (x, o)  t = Not (g)  a = Cast <to = 7> (t)  "
                                "b = Cast <to = 7> (g)  y = Sub (a, b)"),
    # Quantizers
    "zero point of an image": (
        IMAGE, "q = QuantizeLinear (x, s, z)  y = DequantizeLinear (q, s, z)",
        "q = QuantizeLinear (x, s, v)  y = DequantizeLinear (q, s, v)",
    ),
    "zero point of one side": (
        IMAGE, "q = QuantizeLinear (x, s, z)  y = DequantizeLinear (q, s, z)",
        "q = QuantizeLinear (x, s, z)  y = DequantizeLinear (q, s, v)",
    ),
    "a quantizer that is lost": (
        IMAGE, "q = QuantizeLinear (x, s, z)  y = DequantizeLinear (q, s, z)", "y = Identity (x)"
    ),
    "twice quantized": (
        IMAGE, "q = QuantizeLinear (x, s, z)  y = DequantizeLinear (q, s, z)",
        "w = Add (s, s)  p = QuantizeLinear (x, w, z)  r = DequantizeLinear (p, w, z)  "
        "q = QuantizeLinear (r, s, z)  y = DequantizeLinear (q, s, z)",
    ),
    # Axes, shapes, windows
    "the other axis": (SQUARE, "y = ReduceSum <keepdims = 0> (x, f)", "y = ReduceSum <keepdims = 0> (x, l)"),
    "turned before it is reshaped": (
        SQUARE, "y = Identity (x)", "t = Transpose <perm = [0, 2, 1]> (x)  s = Shape (x)  y = Reshape (t, s)"
    ),
    "reversed along an axis": (
        SQUARE, "y = Identity (x)", "m = Constant <value_ints = [-99]> ()  y = Slice (x, n, m, l, n)"
    ),
    "the last element lost": (COUNTED, "y = Slice (x, o, all)", "y = Slice (x, o, n)"),
    "every second for all": (COUNTED, "y = Slice (x, o, all)", "t = Add (i, i)  y = Slice (x, o, all, o, t)"),
    "nothing of an empty tensor": (
        COUNTED, "p = ReduceProd <keepdims = 1> (x)  y = Identity (p)",
        "p = ReduceProd <keepdims = 1> (x)  s = Shape (x)  c = Cast <to = 1> (s)  g = Sign (c)  y = Mul (p, g)",
    ),
    "border of zeros": (
        IMAGE, "y = MaxPool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x)",
        "a = Constant <value_ints = [0, 0, 1, 1, 0, 0, 1, 1]> ()  p = Pad (x, a)  "
        "y = MaxPool <kernel_shape = [3, 3]> (p)",
    ),
    "border counted": (
        IMAGE, "y = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1], count_include_pad = 0> (x)",
        "y = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1], count_include_pad = 1> (x)",
    ),
    "window off by one": (
        IMAGE, "y = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x)",
        "y = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 0, 0]> (x)",
    ),
    # Indices and rows
    "indices clipped": (INDEXED, "y = Gather (x, i)", "c = Max (i, o)  y = Gather (x, c)"),
    "indices counted from the end": (INDEXED, "y = Gather (x, i)", "c = Max (i, low)  d = Min (c, top)  e = Abs (d)  "
                                     "y = Gather (x, e)"),
    "rows exchanged": (ROWS, "y = Gather (x, r)", "y = Gather (x, q)"),
    "scattered in another order": (
        ROWS, "j = Constant <value = int64[2, 1] {1, 3}> ()  y = ScatterND (x, j, u)",
        "j = Constant <value = int64[2, 1] {3, 1}> ()  y = ScatterND (x, j, u)",
    ),
    "the smallest picked": (
        PICKED, "y, i = TopK (x, k)", "n = Neg (x)  a, i = TopK <largest = 0> (n, k)  y = Identity (a)"
    ),
    "picked indices shifted": (
        PICKED, "y, i = TopK (x, k)",
        "y, j = TopK (x, k)  c = Constant <value_int = 1> ()  s = Add (j, c)  t = Constant <value_int = 5> ()  "
        "i = Mod (s, t)",
    ),
    # Branches and loops
    "a branch behind a thousand": (
        BRANCHED,
        "c = Greater (k, t)  y = If (c) <then_branch = a () => (float[N, 4] p) { p = Neg (x) }, "
        "else_branch = b () => (float[N, 4] q) { q = Identity (x) }>",
        "c = Greater (k, t)  y = If (c) <then_branch = a () => (float[N, 4] p) { p = Abs (x) }, "
        "else_branch = b () => (float[N, 4] q) { q = Identity (x) }>",
    ),
    "a branch that is gone": (
        BRANCHED,
        "c = Greater (k, t)  y = If (c) <then_branch = a () => (float[N, 4] p) { p = Neg (x) }, "
        "else_branch = b () => (float[N, 4] q) { q = Identity (x) }>",
        "y = Identity (x)",
    ),
    "another turn of a loop": (
        LOOPED,
        "y = Loop (n, go, x) <body = b (int64 i, bool c, float[4] v) => (bool d, float[4] w) "
        "{ d = Identity (c)  w = Mul (v, h) }>",
        "o = Constant <value_int = 1> ()  m = Add (n, o)  y = Loop (m, go, x) <body = b (int64 i, bool c, float[4] v) "
        "=> (bool d, float[4] w) { d = Identity (c)  w = Mul (v, h) }>",
    ),
    "a loop that goes on": (
        LOOPED,
        "y = Loop (n, go, x) <body = b (int64 i, bool c, float[4] v) => (bool d, float[4] w) "
        "{ d = Identity (stop)  w = Mul (v, h) }>",
        "y = Loop (n, go, x) <body = b (int64 i, bool c, float[4] v) => (bool d, float[4] w) "
        "{ d = Identity (go)  w = Mul (v, h) }>",
    ),
}  # fmt: skip

SAME: dict[str, tuple[str, str, str]] = {
    # The page says that these are the same; of NaN as a bound it says nothing, and kernels ignore it or pass it on.
    "bounds that are fed": (
        "g (float[N, 4] x, float low, float high) => (float[N, 4] y)", "y = Clip (x, low, high)",
        "m = Max (x, low)  y = Min (m, high)",
    ),
    "a mask inverted twice": (MASKED, "y = Where (m, x, low)", "n = Not (m)  y = Where (n, low, x)"),
    "a maximum in either order": (TWO, "y = Max (x, z)", "y = Max (z, x)"),
    "nothing but for NaN and infinities": (FLOATS, "y = Sub (x, x)", "y = Mul (x, o)"),
    "three summands": (TWO, "s = Add (x, z)  y = Add (s, x)", "y = Sum (x, z, x)"),
    "a difference as a sum": (TWO, "y = Sub (x, z)", "n = Neg (z)  y = Add (x, n)"),
    "an absolute value": (FLOATS, "y = Abs (x)", "n = Neg (x)  y = Max (x, n)"),
    "twice is a sum": (FLOATS, "y = Mul (x, two)", "y = Add (x, x)"),
    "a half is a quotient": (FLOATS, "y = Mul (x, h)", "y = Div (x, two)"),
    "what is not less": (TRUTHS, "y = Less (x, z)", "y = Greater (z, x)"),
    "by De Morgan": (
        TRUTHS, "a = Less (x, k)  b = Less (z, k)  y = And (a, b)",
        "a = Less (x, k)  b = Less (z, k)  c = Not (a)  d = Not (b)  e = Or (c, d)  y = Not (e)",
    ),
    "integers doubled": (WHOLE, "y = Mul (x, two)", "y = Add (x, x)"),
    "wrapped either way": (BYTES, "y = Add (x, t)", "a = Cast <to = 6> (x)  b = Cast <to = 6> (t)  c = Add (a, b)  "
                           "m = Constant <value_int = 256> ()  n = Cast <to = 6> (m)  d = Mod (c, n)  "
                           "y = Cast <to = 2> (d)"),
    "a quantizer written out": (
        IMAGE, "q = QuantizeLinear (x, s, z)  y = DequantizeLinear (q, s, z)",
        "a = Div (x, s)  r = Round (a)  w = Cast <to = 1> (z)  b = Add (r, w)  lo = Constant <value_float = 0.0> ()  "
        "hi = Constant <value_float = 255.0> ()  c = Clip (b, lo, hi)  d = Sub (c, w)  y = Mul (d, s)",
    ),
    "turned twice": (
        SQUARE, "y = Identity (x)", "t = Transpose <perm = [0, 2, 1]> (x)  y = Transpose <perm = [0, 2, 1]> (t)"
    ),
    "the last axis by either number": (SQUARE, "y = ReduceMax <axes = [2]> (x)", "y = ReduceMax <axes = [-1]> (x)"),
    "a sum of sums": (
        SQUARE, "b = Constant <value_ints = [1, 2]> ()  y = ReduceSum <keepdims = 0> (x, b)  ",
        "p = ReduceSum (x, f)  b = Constant <value_ints = [1, 2]> ()  y = ReduceSum <keepdims = 0> (p, b)",
    ),
    "a slice to the end": (COUNTED, "y = Slice (x, o, all)", "y = Identity (x)"),
    "pools of nothing but the border": (
        IMAGE, "y = MaxPool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x)",
        "a = Constant <value_ints = [0, 0, 1, 1, 0, 0, 1, 1]> ()  v0 = Constant <value_float = -3.4e38> ()  "
        "p = Pad (x, a, v0)  y = MaxPool <kernel_shape = [3, 3]> (p)",
    ),
    "indices wrapped": (
        INDEXED, "y = Gather (x, i)", "n = Less (i, o)  s = Add (i, k)  w = Where (n, s, i)  y = Gather (x, w)"
    ),
    "rows by slices": (
        ROWS, "y = Gather (x, r)",
        "a = Constant <value_ints = [1]> ()  b = Constant <value_ints = [4]> ()  z = Constant <value_ints = [0]> ()  "
        "t = Constant <value_ints = [2]> ()  y = Slice (x, a, b, z, t)",
    ),
    "picked of the negative": (
        PICKED, "y, i = TopK (x, k)", "n = Neg (x)  a, i = TopK <largest = 0> (n, k)  y = Neg (a)"
    ),
    "a branch chosen by Where": (
        BRANCHED,
        "c = Greater (k, t)  y = If (c) <then_branch = a () => (float[N, 4] p) { p = Neg (x) }, "
        "else_branch = b () => (float[N, 4] q) { q = Identity (x) }>",
        "c = Greater (k, t)  a = Neg (x)  y = Where (c, a, x)",
    ),
    "a loop by a power": (
        LOOPED,
        "y = Loop (n, go, x) <body = b (int64 i, bool c, float[4] v) => (bool d, float[4] w) "
        "{ d = Identity (c)  w = Mul (v, h) }>",
        "o = Constant <value_int = 0> ()  m = Max (n, o)  f = Cast <to = 1> (m)  p = Pow (h, f)  y = Mul (x, p)",
    ),
}  # fmt: skip


# Pairs that differ in more than a body.
CALL = "g (float[N, 4] x) => (float[N, 4] y) { y = local.f <k = 0.5> (x) }"
FUNCTION = (
    '<domain: "local", opset_import: ["": 18]> f <k> (a) => (b) {{ c = Constant <value_float: float = @k> ()  b = {} }}'
)
CALLED_TWICE = (
    "g (float[N, 4] x) => (float[N, 4] y, float[N, 4] z) {{ r = {} (x)  y = local.f <k = 2.0> (r)  "
    "n = Neg (r)  z = local.f <k = {}> (n) }}"
)
GIVEN = "g (float[N] x, float[1] b) => (float[N] y) <float[1] b = {2}> { y = Add (x, b) }"
FROZEN = GIVEN.replace("y = Add (x, b)", "c = Constant <value_floats = [2.0]> ()  y = Add (x, c)")
SCALES = ", ".join(f"{at / 100:g}" for at in range(100))
BY_CHANNEL = (
    "g (int8[100, 2] x) => (float[100, 2] y, float[100] t) "
    "<float[100] s = {{{0}}}, float[100, 1] w = {{{1}}}, float i = {{1}}> {{ t = Neg (s)  {2} }}"
)
SCALED_BEFORE = "y = DequantizeLinear <axis = 0> (x, s)"
SCALED_AFTER = "d = DequantizeLinear (x, i)  y = Mul (d, w)"
FLIPPING = (
    "g (float[N, 6, 32] x) => (float[N, 3] y) <float s = {{0.1}}, float w = {{0.03}}, uint8 z = {{128}}, "
    "int64[1] a = {{1}}, float n = {{6}}, float[32, 3] k = {{"
    + ", ".join(f"{(7 * at % 11 - 5) / 9:.4f}" for at in range(96))
    + "}}> {{ q = QuantizeLinear (x, s, z)  d = DequantizeLinear (q, s, z)  {0}  r = QuantizeLinear (m, s, z)  "
    "e = DequantizeLinear (r, s, z)  p = MatMul (e, k)  t = QuantizeLinear (p, w, z)  y = DequantizeLinear (t, w, z) }}"
)
MEAN = FLIPPING.format("m = ReduceMean <keepdims = 0> (d, a)")
SIXTHS = FLIPPING.format("v = Div (d, n)  m = ReduceSum <keepdims = 0> (v, a)")
FIFTHS = SIXTHS.replace("n = {6}", "n = {6.05}")
ALIKE = (
    "g (float[N, 4] x) => (float[N, 4] y, float[N, 4] z) <float o = {{0}}> {{ r = Relu (x)  y = {0} (r)  "
    "n = Neg (x)  a = {0} (n)  z = Max (a, n) }}"
)

BUILT_DIFFERENT: dict[str, tuple[ModelProto, ModelProto]] = {
    "an attribute of a call": (
        model(CALLED_TWICE.format("Relu", "3.0"), functions=FUNCTION.format("Mul (a, c)")),
        model(CALLED_TWICE.format("Relu", "2.0"), functions=FUNCTION.format("Mul (a, c)")),
    ),
    "the body of a function": (
        model(CALL, functions=FUNCTION.format("Mul (a, c)")), model(CALL, functions=FUNCTION.format("Add (a, c)")),
    ),
    "a function inlined with another attribute": (
        model(CALL, functions=FUNCTION.format("Mul (a, c)")),
        model("g (float[N, 4] x) => (float[N, 4] y) <float c = {0.25}> { y = Mul (x, c) }"),
    ),
    "a default that is frozen": (model(GIVEN), model(FROZEN)),
    "alike regions in unlike places": (model(ALIKE.format("Abs")), model(ALIKE.format("Identity"))),
    "one of many scales": (
        model(BY_CHANNEL.format(SCALES, SCALES, SCALED_BEFORE), 13),
        model(BY_CHANNEL.format(SCALES, SCALES.replace("0.77", "0.78"), SCALED_AFTER), 13),
    ),
    "a mean before a quantizer": (model(MEAN), model(FIFTHS)),
}  # fmt: skip

BUILT_SAME: dict[str, tuple[ModelProto, ModelProto]] = {
    "a function inlined": (
        model(CALL, functions=FUNCTION.format("Mul (a, c)")),
        model("g (float[N, 4] x) => (float[N, 4] y) <float c = {0.5}> { y = Mul (c, x) }"),
    ),
    "a function of another name": (
        model(CALL, functions=FUNCTION.format("Mul (a, c)")),
        model(CALL.replace("local.f", "local.h"), functions=FUNCTION.format("Mul (a, c)").replace("> f <", "> h <")),
    ),
    "scales kept beside what was made of them": (
        model(BY_CHANNEL.format(SCALES, SCALES, SCALED_BEFORE), 13),
        model(BY_CHANNEL.format(SCALES, SCALES, SCALED_AFTER), 13),
    ),
    "ties that another order of a sum flips": (model(MEAN), model(SIXTHS)),
}  # fmt: skip


TEXTS = 'g (string[4] x) => (bool[4] y) <string w = {"abcq"}, string v = {"abcz"}>'
HOT = "g (int64[4] x) => (float[4, 70] y) <int64 d = {70}, float[2] v = {0, 1}, int64 last = {69}>"

DIFFERENT |= {
    "a string that is compared with": (TEXTS, "y = Equal (x, w)", "y = Equal (x, v)"),
    "the last row of a long one-hot": (HOT, "y = OneHot (x, d, v)", "z = Min (x, last) y = OneHot (z, d, v)"),
}


# What once passed, and relatives of it. The operators' own opset versions where they are newer.
BOXES = "g (float[1, 6, 4] b, float[1, 1, 6] s) => (int64[K, 3] y) <int64 m = {3}, float t = {0.5}, float u = {0.4}>"
CHOSEN = "g (float[N] x, int64 k) => (float[N] y) <int64 five = {5}, int64 four = {4}>"
CHOICE = (
    "{} y = If (c) <then_branch = a () => (float[N] p) {{ p = Neg (x) }}, else_branch = b () => (float[N] q) "
    "{{ q = Abs (x) }}>"
)
HALF = "g (float16[N, 8] x) => (float16[N, 8] y)"
HALF_HELD = f"{HALF} <float16 k = {{25552}}>"  # the bits of 1000
LONG = "g (float[N, 64] x) => (float[N, 1] y) <int64[1] a = {1}>"
BOUNDED = (
    "g (float[N, 4] x) => (float[N, 4] y) <float a = {-3}, float b = {3}, float c = {3.0001}, float k = {0.99998}>"
)
MAXIMAL = "g (float[N, 4] x) => (float[N, 4] y) <float k = {3.4028235e38}>"
RUNNING = "g (float[3] x, int64 n) => (float[3] y, float[K, 3] z) <bool go = {1}, float h = {0.5}, int64 two = {2}>"
TURNS = (
    "y, z = Loop (n, go, x) <body = b (int64 i, bool c, float[3] v) => (bool d, float[3] w, float[3] s) "
    "{{ d = {} (i, two)  w = Mul (v, h)  s = Identity ({}) }}>"
)
NORMAL = "g (float[N, 8] x, float[8] s, float[8] b) => (float[N, 8] y)"
GRID = "g (float[N, 2, 6, 6] x, float[N, 3, 3, 2] i) => (float[N, 2, 3, 3] y)"
ENLARGED = "g (float[N, 2, 6, 6] x) => (float[N, 2, A, B] y) <float[4] k = {1, 1, 2, 2}, float[4] o = {1, 1, 1.7, 1.7}>"
LISTED = "g (float[N, 3] x, float[N, 3] z) => (float[A, B] y) <int64 i = {0}, int64 m = {-1}>"

DIFFERENT |= {
    "one sign of infinity": ("g (float[N] x) => (bool[N] y)", "y = IsInf (x)", "y = IsInf <detect_positive = 0> (x)"),
    "an infinity kept by a bound": (MAXIMAL, "y = Identity (x)", "y = Min (x, k)"),
    "a condition on a number, off by one": (
        CHOSEN, CHOICE.format("c = Greater (k, five)"), CHOICE.format("c = Greater (k, four)")
    ),
    "a condition on a number, of either sign": (
        CHOSEN, CHOICE.format("c = Less (k, five)"), CHOICE.format("e = Abs (k)  c = Less (e, five)")
    ),
    "a bound off by a hair": (BOUNDED, "y = Clip (x, a, b)", "y = Clip (x, a, c)"),
    "a factor off by a hair": (BOUNDED, "y = Identity (x)", "y = Mul (x, k)"),
    "a sum in float16": (LONG, "y = ReduceSum (x, a)", "h = Cast <to = 10> (x)  s = ReduceSum (h, a)  "
                         "y = Cast <to = 1> (s)"),
    "an exponential in float16": (
        HALF, "f = Cast <to = 1> (x)  e = Exp (f)  l = Log (e)  y = Cast <to = 10> (l)", "e = Exp (x)  y = Log (e)"
    ),
    # onnxruntime computes these in float, and rounds once at the end.
    "a product beyond float16 on the way": (HALF_HELD, "y = Identity (x)", "m = Mul (x, k)  y = Div (m, k)"),
    "digits that float16 loses on the way": (HALF_HELD, "y = Identity (x)", "a = Add (x, k)  y = Sub (a, k)"),
    "an end of a slice beyond 20,000": (
        "g (float[N, 4] x) => (float[M, 4] y) <int64[1] s = {0}, int64[1] e = {65536}>",
        "y = Slice (x, s, e, s)", "y = Identity (x)",
    ),
    "how far boxes may overlap": (
        BOXES, "y = NonMaxSuppression (b, s, m, t)", "y = NonMaxSuppression (b, s, m, u)"
    ),
    "a loop that stops a turn later": (RUNNING, TURNS.format("Less", "v"), TURNS.format("LessOrEqual", "v")),
    "what a loop collects": (RUNNING, TURNS.format("Less", "v"), TURNS.format("Less", "w")),
    "an epsilon": (
        NORMAL, "y = LayerNormalization <epsilon = 1e-5> (x, s, b)", "y = LayerNormalization <epsilon = 1e-6> (x, s, b)"
    ),
    "corners of a grid": (GRID, "y = GridSample <align_corners = 1> (x, i)", "y = GridSample (x, i)"),
    "border of a grid": (GRID, 'y = GridSample <padding_mode = "border"> (x, i)', "y = GridSample (x, i)"),
    "how coordinates are cut": (
        ENLARGED, 'y = Resize <mode = "nearest", nearest_mode = "floor"> (x, , o)',
        'y = Resize <mode = "nearest"> (x, , o)',
    ),
    "where coordinates start": (
        ENLARGED, 'y = Resize <mode = "linear"> (x, , k)',
        'y = Resize <mode = "linear", coordinate_transformation_mode = "asymmetric"> (x, , k)',
    ),
    "a coefficient of a cubic": (
        ENLARGED, 'y = Resize <mode = "cubic"> (x, , k)', 'y = Resize <mode = "cubic", cubic_coeff_a = -0.5> (x, , k)'
    ),
    "an item of a sequence": (
        LISTED, "s = SequenceConstruct (x, z)  y = SequenceAt (s, i)",
        "s = SequenceConstruct (x, z)  y = SequenceAt (s, m)",
    ),
    "where a sequence gets an item": (
        LISTED, "s = SequenceConstruct (x)  t = SequenceInsert (s, z, i)  y = ConcatFromSequence <axis = 0> (t)",
        "s = SequenceConstruct (x)  t = SequenceInsert (s, z)  y = ConcatFromSequence <axis = 0> (t)",
    ),
}  # fmt: skip


# What the reference evaluator does not read, so that it is no witness.
GATED = "g (float[5, 2, 4] x, float[1, 9, 4] w, float[1, 9, 3] r, int32[2] s) => (float[A, B, C, D] y)"
CELLS = "g (float[5, 2, 4] x, float[1, 12, 4] w, float[1, 12, 3] r, int32[2] s) => (float[A, B, C, D] y)"

DIFFERENT |= {
    "the functions of a GRU": (
        GATED, 'y = GRU <hidden_size = 3, activations = ["Sigmoid", "Relu"]> (x, w, r)',
        "y = GRU <hidden_size = 3> (x, w, r)",
    ),
    "a bound of a GRU": (
        GATED, "y = GRU <hidden_size = 3, clip = 0.1> (x, w, r)", "y = GRU <hidden_size = 3> (x, w, r)"
    ),
    "lengths of a GRU": (GATED, "y = GRU <hidden_size = 3> (x, w, r, , s)", "y = GRU <hidden_size = 3> (x, w, r)"),
    "lengths of an LSTM": (CELLS, "y = LSTM <hidden_size = 3> (x, w, r, , s)", "y = LSTM <hidden_size = 3> (x, w, r)"),
    "gates of an LSTM": (
        CELLS, "y = LSTM <hidden_size = 3, input_forget = 1> (x, w, r)", "y = LSTM <hidden_size = 3> (x, w, r)"
    ),
    "the order in which a window counts": (
        "g (float[1, 1, 5, 5] x) => (float[A, B, C, D] y, int64[A, B, C, D] i)",
        "y, i = MaxPool <kernel_shape = [2, 2], storage_order = 1> (x)", "y, i = MaxPool <kernel_shape = [2, 2]> (x)",
    ),
    "the order of unique values": (
        "g (float[8] x) => (float[K] y)", "y = Unique <sorted = 0> (x)", "y = Unique <sorted = 1> (x)"
    ),
}  # fmt: skip


# What the values of an input that says where or how many have to show.
LENGTHS = "g (float[T, B] x, int64[B] l) => (float[C, D] y) <int64 two = {2}>"
FEW_LENGTHS = "g (float[6, 3] x, int64[3] l) => (float[C, D] y) <int64 five = {5}>"

DIFFERENT |= {
    "that rows are reversed": (LENGTHS, "y = ReverseSequence (x, l)", "y = Identity (x)"),
    "how much of rows is reversed": (
        FEW_LENGTHS, "y = ReverseSequence (x, l)", "m = Min (l, five) y = ReverseSequence (x, m)"
    ),
    "that a shape is another": (
        "g (float[3, 4] x, int64[2] s) => (float[A, B] y)", "y = Reshape (x, s)", "y = Identity (x)"
    ),
    "that edges are cut off": (
        "g (float[4] x, int64[2] p) => (float[A] y)", "y = Pad (x, p)", "a = Abs (p) y = Pad (x, a)"
    ),
    "how many are taken": (
        "g (float[6] x, int64[1] k) => (float[A] y) <int64[1] m = {5}>", "y, i = TopK (x, k)",
        "j = Min (k, m) y, i = TopK (x, j)",
    ),
    "a class that counts for nothing": (
        "g (float[N, 6] x, int64[N] t) => (float[N] y)",
        'y = NegativeLogLikelihoodLoss <reduction = "none", ignore_index = 5> (x, t)',
        'y = NegativeLogLikelihoodLoss <reduction = "none"> (x, t)',
    ),
}  # fmt: skip


# What is told at run time: scales and sizes, pads, axes, where to cut; and strings made of several.
SCALED = "g (float[1, 2, 4, 5] x, float[4] s) => (float[A, B, C, D] y)"
GRAMS = (
    'y = TfIdfVectorizer <mode = "TF", min_gram_length = 2, max_gram_length = 2, max_skip_count = %d, '
    "ngram_counts = [0, 4], ngram_indexes = [0, 1, 2, 3, 4, 5, 6], pool_int64s = [2, 3, 5, 4, 5, 6, 7, 8, 6, 7]> (x)"
)

DIFFERENT |= {
    "how a Resize told at run time rounds": (
        SCALED, 'y = Resize <mode = "nearest", nearest_mode = "floor"> (x, , s)',
        'y = Resize <mode = "nearest", nearest_mode = "ceil"> (x, , s)',
    ),
    "from where a Resize counts": (
        SCALED, 'y = Resize <mode = "linear", coordinate_transformation_mode = "asymmetric"> (x, , s)',
        'y = Resize <mode = "linear", coordinate_transformation_mode = "half_pixel"> (x, , s)',
    ),
    "a cubic for a line": (SCALED, 'y = Resize <mode = "linear"> (x, , s)', 'y = Resize <mode = "cubic"> (x, , s)'),
    "sizes told at run time": (
        "g (float[1, 2, 4, 5] x, int64[4] s) => (float[A, B, C, D] y)", 'y = Resize <mode = "linear"> (x, , , s)',
        'y = Resize <mode = "nearest"> (x, , , s)',
    ),
    "a reflection for an edge": (
        "g (float[3, 4] x, int64[4] p) => (float[A, B] y)", 'y = Pad <mode = "reflect"> (x, p)',
        'y = Pad <mode = "edge"> (x, p)',
    ),
    "words split once or twice": (
        "g (string[3] x) => (string[3, A] y, int64[3] n)", "y, n = StringSplit <maxsplit = 1> (x)",
        "y, n = StringSplit <maxsplit = 2> (x)",
    ),
    "words in other letters": (
        "g (string[4] x) => (string[A] y)",
        'y = StringNormalizer <is_case_sensitive = 1, stopwords = ["monday"]> (x)',
        'y = StringNormalizer <is_case_sensitive = 0, stopwords = ["monday"]> (x)',
    ),
    "grams with gaps": ("g (int32[12] x) => (float[A] y)", GRAMS % 0, GRAMS % 5),
    "from which end it sums": (
        "g (float[3, 4] x, int64 a) => (float[3, 4] y)", "y = CumSum (x, a)", "y = CumSum <reverse = 1> (x, a)"
    ),
    "steps told at run time": (
        "g (float[5, 6] x, int64[2] s, int64[2] e, int64[2] a, int64[2] t) => (float[A, B] y) <int64[2] o = {1, 1}>",
        "y = Slice (x, s, e, a, t)", "y = Slice (x, s, e, a, o)",
    ),
    "a diagonal told at run time": (
        "g (float[4, 4] x, int64 k) => (float[4, 4] y) <int64 o = {0}>", "y = Trilu (x, k)", "y = Trilu (x, o)"
    ),
}  # fmt: skip


# An epsilon as small as programs write it, and a constant that a whole input has to be.
NORMALIZED = "g (float[N, 8] x, float[8] s) => (float[N, 8] y)"
LAYER = "y = LayerNormalization <epsilon = %s> (x, s)"

DIFFERENT |= {
    "a small epsilon": (NORMALIZED, LAYER % "1e-12", LAYER % "1e-13"),
    "a far smaller epsilon": (NORMALIZED, LAYER % "1e-12", LAYER % "1e-20"),
    "an epsilon of rows that are all alike": (NORMALIZED, LAYER % "1e-12", LAYER % "0.0"),
    "one of five numbers": (
        "g (int64[5] x) => (int64[1] y) <int64[5] k = {3, 1, 4, 1, 5}, int64[5] other = {3, 1, 4, 1, 6}>",
        "e = Equal (x, k)  i = Cast <to = 7> (e)  y = ReduceMin (i)",
        "e = Equal (x, other)  i = Cast <to = 7> (e)  y = ReduceMin (i)",
    ),
}  # fmt: skip


def _pair(row: tuple[str, str, str]) -> tuple[ModelProto, ModelProto]:
    signature, before, after = row
    opset = 20 if "IsInf" in before or "StringSplit" in before else 18
    return model(f"{signature} {{ {before} }}", opset), model(f"{signature} {{ {after} }}", opset)


EVERY_DIFFERENT = {what: _pair(row) for what, row in DIFFERENT.items()} | BUILT_DIFFERENT
EVERY_SAME = {what: _pair(row) for what, row in SAME.items()} | BUILT_SAME


@pytest.mark.parametrize("what", EVERY_DIFFERENT)
def test_what_differs_is_different(what: str) -> None:
    found = verify(*EVERY_DIFFERENT[what])
    assert found.verdict == "different", str(found)


@pytest.mark.parametrize("what", EVERY_SAME)
def test_what_is_the_same_is_equivalent(what: str) -> None:
    found = verify(*EVERY_SAME[what])
    assert found.verdict == "equivalent", str(found)


# The second threshold is read only of rows that are below the first.
TREE = (
    "{ y = ai.onnx.ml.TreeEnsembleRegressor <n_targets = 1, nodes_falsenodeids = [4, 3, 0, 0, 0], "
    "nodes_featureids = [0, 1, 0, 0, 0], nodes_modes = ['BRANCH_LEQ', 'BRANCH_LEQ', 'LEAF', 'LEAF', 'LEAF'], "
    "nodes_nodeids = [0, 1, 2, 3, 4], nodes_treeids = [0, 0, 0, 0, 0], nodes_truenodeids = [1, 2, 0, 0, 0], "
    "nodes_values = [-777.0, 5.0e6, 0.0, 0.0, 0.0], target_ids = [0, 0, 0], target_nodeids = [2, 3, 4], "
    "target_treeids = [0, 0, 0], target_weights = [1.0, 2.0, 3.0]> (x) }"
)


@pytest.mark.parametrize(
    ("body", "other"),
    [
        (TREE, ("5.0e6", "5.1e6")),
        ("{ y = ai.onnx.ml.LabelEncoder <keys_int64s = [77777, 2], values_int64s = [1, 2]> (x) }", ("77777", "77778")),
    ],
    ids=["a tree", "a key"],
)
def test_what_attributes_hold_is_fed(body: str, other: tuple[str, str]) -> None:
    graph = "g (float[N, 2] x) => (float[N, 1] y)" if body == TREE else "g (int64[4] x) => (int64[4] y)"
    text = f"<ir_version: 9, opset_import: ['': 17, 'ai.onnx.ml': 2]> {graph} {body}".replace("'", '"')
    before, after = parser.parse_model(text), parser.parse_model(text.replace(*other))
    assert verify(before, after).verdict == "different"
    assert verify(before, before).verdict == "equivalent"
