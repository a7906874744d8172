"""Compare forms of LayerNormalization on float16 activations of 1e4: exporters', the operator, and the rule book's.

It prints the table of the page on numerics. Exact values come from double, which is right to ten digits here. Bodies
run node by node, and every result is rounded to its type, as on a GPU in half precision. (onnxruntime on CPU computes
nodes of float16 in float.)
"""

from __future__ import annotations

import numpy as np
import onnxruntime
from onnx import ModelProto, parser
from onnx.reference import ReferenceEvaluator

import reducelower

SIZES = (64, 128, 256, 512, 1024, 2048, 4096, 8192)
SHOWN = (64, 1024, 8192)
MAGNITUDE = 1e4
ROWS = 4

EXPORTED = """<ir_version: 8, opset_import: ["": 17]>
g (float16[N, C] x, float16[C] scale, float16[C] bias) => (float16[N, C] y) {
    two_wide = Constant <value_float = 2.0> ()
    two = Cast <to = 10> (two_wide)
    epsilon_wide = Constant <value_float = 0.00001> ()
    epsilon = Cast <to = 10> (epsilon_wide)
    mean = ReduceMean <axes = [-1]> (x)
    deviation = Sub (x, mean)
    square = Pow (deviation, two)
    variance = ReduceMean <axes = [-1]> (square)
    stabilized = Add (variance, epsilon)
    root = Sqrt (stabilized)
    normalized = Div (deviation, root)
    scaled = Mul (normalized, scale)
    y = Add (scaled, bias)
}"""
OPERATOR = """<ir_version: 8, opset_import: ["": 17]>
g (float16[N, C] x, float16[C] scale, float16[C] bias) => (float16[N, C] y) {
    y = LayerNormalization (x, scale, bias)
}"""


def forms() -> dict[str, ModelProto]:
    """The compared forms, by their names in the table."""
    operator = parser.parse_model(OPERATOR)
    models = {"exporter's form": parser.parse_model(EXPORTED), "operator": operator}
    for rules in ("spec", "stable"):
        models[f"`{rules}`"] = reducelower.expand(operator, ops=["LayerNormalization"], rules=rules)
    narrow = reducelower.expand(operator, ops=["LayerNormalization"], rules="stable", without_types=["float"])
    return {**models, "`stable` without float": narrow}


def run(model: ModelProto, feeds: dict[str, np.ndarray]) -> np.ndarray:
    if len(model.graph.node) > 1:
        with np.errstate(all="ignore"):
            return np.asarray(ReferenceEvaluator(model).run(None, feeds)[0])
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, feeds)[0])


def rows(size: int, offset: float) -> dict[str, np.ndarray]:
    """Random rows of one magnitude, and scale and bias."""
    random = np.random.default_rng(size)
    x = random.uniform(-1, 1, (ROWS, size)) * MAGNITUDE * (0.01 if offset else 1) + offset
    vectors = {"scale": random.normal(1, 0.1, size), "bias": random.normal(0, 0.1, size)}
    return {name: value.astype(np.float16) for name, value in {"x": x, **vectors}.items()}


def normalized(x: np.ndarray, scale: np.ndarray, bias: np.ndarray) -> np.ndarray:
    deviation = x - x.mean(-1, keepdims=True)
    return deviation / np.sqrt((deviation**2).mean(-1, keepdims=True) + float(np.float32(1e-5))) * scale + bias


def errors(size: int, offset: float) -> dict[str, float]:
    """The largest error of each form, in ULP of the larger of the exact value and 1; infinite for NaN."""
    feeds = rows(size, offset)
    exact = normalized(*(value.astype(np.float64) for value in feeds.values()))
    unit = np.exp2(np.floor(np.log2(np.maximum(np.abs(exact), 1)))) * 2.0**-10
    errors_of = {}
    for name, model in forms().items():
        result = run(model, feeds).astype(np.float64)
        off = np.abs(result - exact) / unit
        errors_of[name] = float(np.where(np.isfinite(result), off, np.inf).max())
    return errors_of


OFFSETS = {f"between -{MAGNITUDE:g} and {MAGNITUDE:g}": 0.0, f"{MAGNITUDE:g}, give or take 100": MAGNITUDE}
"""The mean of the activations, by their names in the table."""


def main() -> None:
    for what, offset in OFFSETS.items():
        print(f"Activations {what}:\n")
        for size in SHOWN:
            worst = errors(size, offset)
            if size == SHOWN[0]:
                print("| hidden size | " + " | ".join(worst) + " |\n|" + "---|" * (len(worst) + 1))
            cells = [f"{error:.1f}" if error < 10 else f"**{error:.3g}**" for error in worst.values()]
            print(f"| {size:,} | " + " | ".join(cells) + " |")
        print()


if __name__ == "__main__":
    main()
