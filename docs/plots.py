"""Draw the plots of the page on numerics: the error of each rule over the magnitude or the number of its data.

    python -m docs.plots docs/plots

It needs the extra ``docs``. Every run with the same versions writes the same files.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterator
from pathlib import Path

import matplotlib
import numpy as np
import numpy.typing as npt
import onnxruntime
from onnx import ModelProto, helper

import reducelower
from reducelower.numerics.truth import reduce_floats
from tools.exact.ulp import LIMITS, distance_in_ulps

matplotlib.use("svg")
from matplotlib import pyplot

Floats = npt.NDArray[np.floating]

OPERATORS = ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare", "ReduceMean")

# Powers of ten of the data's magnitude: from the smallest subnormal number to the largest number.
RANGES = {"float16": (-7.0, 4.8), "float32": (-44.0, 38.4), "float64": (-322.0, 308.2)}

# Colour and width. Lines that are drawn first are wider, so that they show below later ones.
SERIES = {
    "onnxruntime's kernel": ("#c4c4c4", 3.6),
    "spec": ("#d62728", 1.8),
    "stable": ("#1f77b4", 1.0),
    "core": ("#1f77b4", 1.0),
}

LAYER_SERIES = {
    "exporter's form": ("#ff7f0e", 1.8),
    "operator": SERIES["onnxruntime's kernel"],
    "`spec`": SERIES["spec"],
    "`stable`": SERIES["stable"],
    "`stable` without float": ("#2ca02c", 1.0),
}

WRONG = 1e6
"""The error in ULP at which infinity, NaN, and any larger error are drawn."""

STYLE = {
    "svg.hashsalt": "reducelower",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def main(folder: str = "docs/plots", magnitudes: int = 90, trials: int = 6) -> None:
    """Draw a file for each operator.

    Args:
        folder: the folder of the files; it is created if it does not exist.
        magnitudes: how many magnitudes to try, between the ends of each type's range.
        trials: how many rows of 16 random values to reduce at each; the largest error counts.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    for operator in OPERATORS:
        with pyplot.rc_context(STYLE):
            figure = drawn(operator, magnitudes, trials)
            _save(figure, Path(folder) / f"{operator}.svg")
    with pyplot.rc_context(STYLE):
        _save(layers_drawn(magnitudes), Path(folder) / "LayerNormalization.svg")


def _save(figure: pyplot.Figure, path: Path) -> None:
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def drawn(operator: str, magnitudes: int, trials: int) -> pyplot.Figure:
    figure, panels = pyplot.subplots(1, len(RANGES), figsize=(10, 2.8), sharey=True, layout="constrained")
    for panel, (element_type, (low, high)) in zip(panels, RANGES.items(), strict=True):
        exponents = np.linspace(low, high, magnitudes)
        data = rows(operator, element_type, exponents, trials)
        exact = [reduce_floats(operator, [float(value) for value in row]) for row in data]
        kind = helper.np_dtype_to_tensor_dtype(data.dtype)
        for name, model in models(operator, element_type):
            errors = [
                distance_in_ulps(float(given), answer, [float(value) for value in row], kind)
                for given, answer, row in zip(run(model, data), exact, data, strict=True)
            ]
            worst = np.minimum(np.reshape(errors, (magnitudes, trials)).max(axis=1), WRONG)
            color, width = SERIES[name]
            panel.plot(exponents, np.maximum(worst, 0.05), label=name, color=color, linewidth=width)
        panel.axhline(LIMITS[kind], color="#bbbbbb", linewidth=0.8, linestyle="--")
        panel.set(title=element_type, yscale="log", ylim=(0.04, 2 * WRONG), xlabel="magnitude, powers of ten")
        panel.set_yticks([0.1, 1, 10, 1e3, WRONG], ["0.1", "1", "10", "1000", "wrong"])
        panel.minorticks_off()
    panels[0].set_ylabel("largest error, ULP")
    panels[0].legend(frameon=False, loc="center left")
    return figure


def layers_drawn(most: int) -> pyplot.Figure:
    """The table as a plot: LayerNormalization of float16 over the hidden size, for the first `most` sizes."""
    example = runpy.run_path(str(Path(__file__).parents[1] / "examples" / "half_precision.py"))
    sizes = example["SIZES"][:most]
    figure, panels = pyplot.subplots(1, 2, figsize=(10, 2.8), sharey=True, layout="constrained")
    for panel, (what, offset) in zip(panels, example["OFFSETS"].items(), strict=True):
        by_size = [example["errors"](size, offset) for size in sizes]
        for name, (color, width) in LAYER_SERIES.items():
            worst = [min(max(each[name], 0.05), WRONG) for each in by_size]
            panel.plot(sizes, worst, label=name.replace("`", ""), color=color, linewidth=width, marker=".")
        panel.set(title=f"activations {what}", xscale="log", yscale="log", ylim=(0.04, 2 * WRONG), xlabel="hidden size")
        panel.set_xticks(sizes, [str(size) for size in sizes])
        panel.set_yticks([0.1, 1, 10, 1e3, WRONG], ["0.1", "1", "10", "1000", "wrong"])
        panel.minorticks_off()
    panels[0].set_ylabel("largest error, ULP")
    panels[0].legend(frameon=False, loc="center left")
    return figure


def rows(operator: str, element_type: str, exponents: Floats, trials: int) -> Floats:
    """Random rows of 16 values; the largest magnitude is about 10 ** exponent."""
    random = np.random.default_rng(0)
    values = random.uniform(0.25, 1.0, (len(exponents), trials, 16))
    if operator != "ReduceLogSum":  # the logarithm of a sum must not be of a negative number
        values *= random.choice([-1.0, 1.0], values.shape)
    largest = np.finfo(element_type).max
    scaled = values * np.power(10.0, exponents)[:, None, None]
    return np.clip(scaled, -largest, largest).astype(element_type).reshape(-1, 16)


def models(operator: str, element_type: str) -> Iterator[tuple[str, ModelProto]]:
    """The operator itself, the specification's body, and the rule."""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(element_type))
    graph = helper.make_graph(
        [helper.make_node(operator, ["data", "axes"], ["reduced"], keepdims=0)],
        "plot",
        [helper.make_tensor_value_info("data", kind, [None, 16])],
        [helper.make_tensor_value_info("reduced", kind, [None])],
        [helper.make_tensor("axes", 7, [1], [1])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    yield "onnxruntime's kernel", model
    for rules in ("core",) if operator == "ReduceMean" else ("spec", "stable"):
        yield rules, reducelower.expand(model, rules=rules)


def run(model: ModelProto, data: Floats) -> Floats:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"data": data})[0])


if __name__ == "__main__":
    main(*sys.argv[1:])
