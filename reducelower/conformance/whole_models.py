"""Conformance models of several nodes: features of whole models, and operators next to each other."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import numpy as np
from onnx import ModelProto, helper, parser

from reducelower.conformance.case import Case

__all__ = ["FEATURE_OPSETS", "OF_MODEL", "exporter_models", "feature_cases"]

FEATURE_OPSETS = (13, 18)

OF_MODEL = "model"
"""The tag of cases of features."""

_X = np.array([[1.5, -2.25, 3.0], [-0.5, 2.0, 1.0]], np.float32)

_COUNTED = re.compile(r"(float\[[\d,]+\] \w+ = ){(\d+)}")


def _table(name: str) -> dict[str, Any]:
    return tomllib.loads((files(__package__) / name).read_text("utf-8"))


def feature_cases(opset: int) -> Iterator[Case]:
    """A case for each feature in `feature_cases.toml`: functions, sparse weights, sizes with names and so on."""
    for feature, row in _table("feature_cases.toml").items():
        imports = ", ".join([f'"": {opset}', *row.get("imports", ())])
        functions = row.get("functions", "").replace("$opset", str(opset))
        model = parser.parse_model(f"<ir_version: 8, opset_import: [{imports}]> g {row['graph']} {functions}")
        if feature == "sparse initializers":  # which the text syntax cannot write
            values = helper.make_tensor("w", 1, [2], [5.0, 7.0])
            places = helper.make_tensor("places", 7, [2], [1, 5])
            model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [2, 3]))
        expected = tuple(np.array(values, np.float32) for values in row["gives"])
        data = model.SerializeToString(deterministic=True)
        yield Case(f"model-{opset} {feature}", feature, opset, data, {"x": _X}, expected, OF_MODEL)


def exporter_models() -> Iterator[tuple[str, ModelProto]]:
    """The models of `exporter_models.toml`, with operators as exporters write them, since runtimes fuse neighbours.

    Each operator may be right on its own. The opset versions are those that exporters have used for long.
    """
    rows = _table("exporter_models.toml")
    for opset in (13, 17):
        for name, row in rows.items():
            weights = _COUNTED.sub(lambda match: f"{match[1]}{{{_values(int(match[2]))}}}", row["weights"])
            head = f'<ir_version: 8, opset_import: ["": {opset}]> pair ({row["inputs"]}) => ({row["outputs"]})'
            yield f"{name}, opset {opset}", parser.parse_model(f"{head} <{weights}> {{{row['nodes']}}}")


def _values(count: int) -> str:
    """This many values, as text."""
    return ", ".join(f"{math.sin(1 + 7 * at) / 2:.3f}" for at in range(count))
