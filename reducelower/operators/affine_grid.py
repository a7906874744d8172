"""AffineGrid where the target has none: the grid of the identity, which is constant, times the given matrices.

The schema's body counts the grid out at run time with vectors where Range takes scalars, which shape inference refuses
as soon as it knows the size.

Source: https://onnx.ai/onnx/operators/onnx__AffineGrid.html (20).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto

from reducelower.absent import expresses
from reducelower.attributes import value_of
from reducelower.scope import Scope
from reducelower.writing import Writer

__all__: list[str] = []

_LARGEST_GRID = 1 << 20


@expresses("AffineGrid", opset=13)
def _affine_grid(node: NodeProto, scope: Scope) -> list[NodeProto] | None:
    """(..., x, y, 1) of every place times the transposed matrix; for a size that is not known the schema's body."""
    size = scope.constant(node.input[1])
    if size is None:
        return None
    batch, _, *spatial = (int(length) for length in size)
    aligned = bool(value_of(node, "align_corners", 0))
    if np.prod(spatial) * (len(spatial) + 1) > _LARGEST_GRID or (aligned and 1 in spatial):
        return None
    body = Writer(node, scope)
    element_type = scope.needed_element_type(node.input[0])
    places = np.meshgrid(*(_places(length, aligned) for length in spatial), indexing="ij")
    # The innermost axis comes first in a coordinate.
    rows = np.stack([*(axis.reshape(-1) for axis in reversed(places)), np.ones(places[0].size)], axis=1)
    grid = body.constant(rows, element_type, "base_grid")
    turned = body.add("Transpose", node.input[0], perm=[0, 2, 1])
    shape = body.constant([batch, *spatial, len(spatial)], TensorProto.INT64, "grid_shape")
    scope.release(node.input[1])
    return body.yields("Reshape", body.add("MatMul", grid, turned), shape)


def _places(length: int, aligned: bool) -> NDArray[np.float64]:
    """Where the elements of an axis lie between -1 and 1: from end to end, or their middles."""
    if aligned:
        return np.linspace(-1, 1, length)
    return (2 * np.arange(length) + 1) / length - 1
