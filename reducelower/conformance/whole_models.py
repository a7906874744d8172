"""Conformance cases of features of whole models."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from importlib.resources import files

import numpy as np
from onnx import helper, parser

from reducelower.conformance.case import Case

__all__ = ["FEATURE_OPSETS", "OF_MODEL", "feature_cases"]

FEATURE_OPSETS = (13, 18)

OF_MODEL = "model"
"""The tag of cases of features."""

_X = np.array([[1.5, -2.25, 3.0], [-0.5, 2.0, 1.0]], np.float32)

_TABLE = tomllib.loads((files(__package__) / "feature_cases.toml").read_text("utf-8"))


def feature_cases(opset: int) -> Iterator[Case]:
    """A case for each feature in `feature_cases.toml`: functions, sparse weights, sizes with names and so on."""
    for feature, row in _TABLE.items():
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
