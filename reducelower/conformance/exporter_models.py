"""Small models of operators as exporters write them side by side, since runtimes fuse what stands together.

Each operator of them may be right alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

from onnx import ModelProto, parser

__all__ = ["exporter_models"]

_OPSETS = (13, 17)

_TANH_GELU = """
    cube = Pow (x, three) part = Mul (cube, a) inner = Add (x, part) scaled = Mul (inner, b) t = Tanh (scaled)
    shifted = Add (t, one) twice = Mul (x, shifted) y = Mul (twice, half)
"""
_LAYER_NORM = """
    mean = ReduceMean <axes = [-1]> (x) away = Sub (x, mean) square = Pow (away, two)
    variance = ReduceMean <axes = [-1]> (square) wide = Add (variance, epsilon) root = Sqrt (wide)
    normal = Div (away, root) scaled = Mul (normal, w) y = Add (scaled, w)
"""
_LOOP = """
    {name} = Loop (count, yes, x) <body = body (int64 at, bool on, float[2,3] value) => (bool more, float[2,3] next) {{
        more = Identity (on) next = Add (value, value)
    }}>
"""

_MODELS: Mapping[str, tuple[str, str, str, str]] = {
    "Conv then InstanceNormalization": (
        "float[1,2,5,6] x",
        "float[1,3,5,6] y",
        "float[3,2,3,3] w = {54}, float[3] scale = {3}, float[3] shift = {3}",
        "c = Conv <pads = [1, 1, 1, 1]> (x, w) y = InstanceNormalization (c, scale, shift)",
    ),
    "Pad then MaxPool": (
        "float[1,2,5,6] x",
        "float[1,2,3,3] y",
        "int64[8] pads = {0, 0, 1, 1, 0, 0, 1, 1}",
        "size = Abs (x) low = Neg (size) p = Pad (low, pads) y = MaxPool <kernel_shape = [3, 3], strides = [2, 2]> (p)",
    ),
    "Constant value_ints then Concat": (
        "float[2,3,4] x",
        "float[M,N] y",
        "int64 zero = {0}",
        "s = Shape (x) n = Gather (s, zero) axes = Constant <value_ints = [0]> () m = Unsqueeze (n, axes) "
        "rest = Constant <value_ints = [-1]> () goal = Concat <axis = 0> (m, rest) y = Reshape (x, goal)",
    ),
    "Shape arithmetic": (
        "float[2,3,4] x",
        "float[M,N] y",
        "int64[1] start = {1}, int64[1] end = {3}, int64[1] first = {-1}",
        "s = Shape (x) part = Slice (s, start, end) whole = ReduceProd <keepdims = 1> (part) "
        "goal = Concat <axis = 0> (first, whole) y = Reshape (x, goal)",
    ),
    "Gelu by Tanh": (
        "float[2,3,4] x",
        "float[2,3,4] y",
        "float three = {3.0}, float a = {0.044715}, float b = {0.7978846}, float one = {1.0}, float half = {0.5}",
        _TANH_GELU,
    ),
    "Gelu by Erf": (
        "float[2,3,4] x",
        "float[2,3,4] y",
        "float root = {1.4142135}, float one = {1.0}, float half = {0.5}",
        "d = Div (x, root) e = Erf (d) s = Add (e, one) t = Mul (x, s) y = Mul (t, half)",
    ),
    "LayerNormalization in parts": (
        "float[2,3,4] x",
        "float[2,3,4] y",
        "float two = {2.0}, float epsilon = {0.00001}, float[4] w = {4}",
        _LAYER_NORM,
    ),
    "GatherElements then Einsum": (
        "float[2,3,4] x",
        "float[2,3,3] y",
        "int64[2,3,4] at = {0,1,2,1,2,1,0,2,1,0,1,2,0,2,2,1,0,1,1,0,2,0,1,2}",
        'g = GatherElements <axis = 1> (x, at) y = Einsum <equation = "bij,bkj->bik"> (g, x)',
    ),
    "Loop beside Loop": (
        "float[2,3] x",
        "float[2,3] y",
        "int64 count = {3}, bool yes = {1}",
        _LOOP.format(name="one") + _LOOP.format(name="other") + "y = Mul (one, other)",
    ),
    "mask by Where then Softmax": (
        "float[2,3,3] x",
        "float[2,3,3] y",
        "bool[3,3] mask = {1,0,0,1,1,0,1,1,1}, float low = {-3.4028235e38}",
        "masked = Where (mask, x, low) y = Softmax <axis = -1> (masked)",
    ),
    "halves turned around": (
        "float[2,3,4] x",
        "float[2,3,4] y",
        "float[4] cos = {4}, int64[1] zero = {0}, int64[1] two = {2}, int64[1] end = {9223372036854775807}, "
        "int64[1] last = {-1}",
        "one = Slice (x, zero, two, last) other = Slice (x, two, end, last) down = Neg (other) "
        "turned = Concat <axis = -1> (down, one) a = Mul (x, cos) b = Mul (turned, cos) y = Add (a, b)",
    ),
    "Split, Sigmoid and Mul": (
        "float[2,3,4] x",
        "float[2,3,2] y",
        "int64[2] parts = {2, 2}",
        "a, b = Split <axis = -1> (x, parts) gate = Sigmoid (b) y = Mul (a, gate)",
    ),
    "Transpose, Reshape and MatMul": (
        "float[2,3,4] x",
        "float[2,2,3,3] y",
        "int64[4] heads = {0, 0, 2, 2}",
        "r = Reshape (x, heads) q = Transpose <perm = [0, 2, 1, 3]> (r) k = Transpose <perm = [0, 2, 3, 1]> (r) "
        "y = MatMul (q, k)",
    ),
    "LSTM both ways": (
        "float[5,1,2] x",
        "float[5,2,1,3] y",
        "float[2,12,2] w = {48}, float[2,12,3] r = {72}, float[2,24] b = {48}",
        'y, h = LSTM <direction = "bidirectional", hidden_size = 3> (x, w, r, b)',
    ),
    "GRU both ways": (
        "float[5,1,2] x",
        "float[5,2,1,3] y",
        "float[2,9,2] w = {36}, float[2,9,3] r = {54}, float[2,18] b = {36}",
        'y = GRU <direction = "bidirectional", hidden_size = 3, linear_before_reset = 1> (x, w, r, b)',
    ),
    "QuantizeLinear then DequantizeLinear and Conv": (
        "float[1,2,5,6] x",
        "float[1,3,5,6] y",
        "float[3,2,3,3] w = {54}, float scale = {0.02}, uint8 zero = {128}",
        "q = QuantizeLinear (x, scale, zero) d = DequantizeLinear (q, scale, zero) "
        "y = Conv <pads = [1, 1, 1, 1]> (d, w)",
    ),
}
"""By name: inputs, outputs, weights, of which `float[...] = {N}` stands for N values, and nodes."""


def exporter_models() -> Iterator[tuple[str, ModelProto]]:
    """Each model with its name, at the opset versions that exporters wrote for long."""
    for opset in _OPSETS:
        for name, (inputs, outputs, weights, nodes) in _MODELS.items():
            held = _with_values(weights)
            text = f'<ir_version: 8, opset_import: ["": {opset}]> pair ({inputs}) => ({outputs}) <{held}> {{{nodes}}}'
            yield f"{name}, opset {opset}", parser.parse_model(text)


def _with_values(weights: str) -> str:
    """Weights with values in place of their number."""
    return _COUNTED.sub(lambda found: f"{found[1]}{{{', '.join(map(_value, range(int(found[2]))))}}}", weights)


_COUNTED = re.compile(r"(float\[[\d,]+\] \w+ = ){(\d+)}")


def _value(at: int) -> str:
    return f"{math.sin(1 + 7 * at) / 2:.3f}"
