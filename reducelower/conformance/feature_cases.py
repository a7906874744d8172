"""Conformance cases of what a model as a whole may have: functions, sparse weights, sizes with names.

Each is as small as it can be; expected values are numpy's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from onnx import ModelProto, helper, parser

from reducelower.conformance.case import Array, Case
from reducelower.runtimes.facts import ModelFeature

__all__ = ["FEATURE_OPSETS", "OF_MODEL", "feature_cases"]

FEATURE_OPSETS = (13, 18)

OF_MODEL = "model"
"""The tag of these cases."""

_X = np.array([[1.5, -2.25, 3.0], [-0.5, 2.0, 1.0]], np.float32)

_MODELS: Mapping[ModelFeature, tuple[str, Sequence[Array]]] = {
    "functions": (
        '<ir_version: 8, opset_import: ["": {opset}, "own": 1]> g (float[2,3] x) => (float[2,3] result)'
        "{{ twice = own.Twice (x) result = own.Twice (twice) }}"
        '<domain: "own", opset_import: ["": {opset}]> Twice (value) => (sum) {{ sum = Add (value, value) }}',
        [4 * _X],
    ),
    "outputs that are inputs": (
        '<ir_version: 8, opset_import: ["": {opset}]> g (float[2,3] x) => (float[2,3] result, float[2,3] x)'
        "{{ result = Neg (x) }}",
        [-_X, _X],
    ),
    "named sizes": (
        '<ir_version: 8, opset_import: ["": {opset}]> g (float[batch,3] x) => (float[batch,3] result)'
        "{{ result = Neg (x) }}",
        [-_X],
    ),
    "defaults of inputs": (
        '<ir_version: 8, opset_import: ["": {opset}]> g (float[2,3] x, float[1] by = {{2.0}}) => (float[2,3] result)'
        "{{ result = Mul (x, by) }}",
        [2 * _X],
    ),
    "imports of other domains": (
        '<ir_version: 8, opset_import: ["": {opset}, "own": 1]> g (float[2,3] x) => (float[2,3] result)'
        "{{ result = Neg (x) }}",
        [-_X],
    ),
    "narrow values in int32_data": (
        '<ir_version: 8, opset_import: ["": {opset}]> g (float[2,3] x) => (float[2,3] result)'
        "<bool[2,3] mask = {{1, 0, 0, 0, 1, 1}}> {{ down = Neg (x) result = Where (mask, x, down) }}",
        [np.where([[True, False, False], [False, True, True]], _X, -_X)],
    ),
}
"""By feature: the model as text, and its outputs for `_X`."""


def feature_cases(opset: int) -> Iterator[Case]:
    """A case of each feature, and of the sparse initializer, which the text syntax cannot write."""
    for feature, (text, expected) in _MODELS.items():
        yield _case(feature, opset, parser.parse_model(text.format(opset=opset)), expected)
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["": {opset}]> g (float[2,3] x) => (float[2,3] result){{ result = Add (x, w) }}'
    )
    values = helper.make_tensor("w", 1, [2], [5.0, 7.0])
    places = helper.make_tensor("places", 7, [2], [1, 5])
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [2, 3]))
    yield _case("sparse initializers", opset, model, [_X + np.array([[0, 5, 0], [0, 0, 7]], np.float32)])


def _case(feature: ModelFeature, opset: int, model: ModelProto, expected: Sequence[Array]) -> Case:
    data = model.SerializeToString(deterministic=True)
    name = f"model-{opset} {feature}"
    return Case(name, feature, opset, data, {"x": _X}, tuple(expected), tag=OF_MODEL)
