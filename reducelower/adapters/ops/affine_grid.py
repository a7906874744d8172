"""AffineGrid for targets that lack it; not text, since numpy computes the grid.

The result is the grid of the identity, which is constant, times the given matrices. The function body in the schema
cannot be used: it squeezes away a batch of one, and passes vectors to Range, which takes scalars.

Source: the page of AffineGrid (20).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.rules import rule
from reducelower.errors import RefusedError
from reducelower.model.numbers import HALVES


@rule("AffineGrid", "absent", opset=13)
def _affine_grid(op: Writer) -> list[NodeProto]:
    """Multiply (..., x, y, 1) of every place by the transposed matrix; 16-bit floats in float, as sums may cancel."""
    own_type = op.element_type(0)
    element_type = TensorProto.FLOAT if own_type in HALVES else own_type
    batch, _, *sizes = op.scope.known(op.input(1)).elements or (None, None, None)
    spatial = [size for size in sizes if isinstance(size, int)]
    if len(spatial) < len(sizes) or not (isinstance(batch, int) or all(spatial)):
        raise RefusedError(
            "the height and width in its size are computed at run time", "opset 20 is the oldest that has AffineGrid"
        )
    op.make_room(*spatial, len(spatial) + 1)
    rows = op.constant(_rows(spatial, bool(op.attribute("align_corners", 0))), element_type, "base_grid")
    shape = op.integers([batch if isinstance(batch, int) else -1, *spatial, len(spatial)], "grid_shape")
    transposed = op.add("Transpose", op.cast(op.input(0), own_type, element_type, "wide"), perm=[0, 2, 1])
    return op.yields("Reshape", op.cast(op.add("MatMul", rows, transposed), element_type, own_type, "grid"), shape)


def _rows(spatial: list[int], aligned: bool) -> NDArray[np.float64]:
    places = np.meshgrid(*(_places(length, aligned) for length in spatial), indexing="ij")
    # The innermost axis comes first in a coordinate.
    return np.stack([*(axis.reshape(-1) for axis in reversed(places)), np.ones(places[0].size)], axis=1)


def _places(length: int, aligned: bool) -> NDArray[np.float64]:
    """Coordinates of the elements of an axis from -1 to 1: from end to end, or the middles of equal parts."""
    if aligned:
        return np.arange(length) * 2 / max(length - 1, 1) - 1
    return (2 * np.arange(length) + 1) / length - 1
