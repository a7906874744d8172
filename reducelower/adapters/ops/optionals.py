"""OptionalHasElement and OptionalGetElement of what is no optional, which opset 18 made valid.

Sources: https://onnx.ai/onnx/operators/onnx__OptionalHasElement.html (15, 18),
https://onnx.ai/onnx/operators/onnx__OptionalGetElement.html (15, 18).
"""

from __future__ import annotations

from onnx import TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.decompose import expresses
from reducelower.adapters.registry import Outcome, lowers
from reducelower.errors import RefusedError


def _is_optional(op: Writer) -> bool:
    name = op.input(0)
    found = op.scope.type(name)
    if found is None:
        raise RefusedError(
            f"whether {name!r} is an optional is not known, and only those are taken before opset 18",
            "opset 18 is the oldest that takes others",
        )
    return bool(found.WhichOneof("value") == "optional_type")


@lowers("OptionalHasElement", 18)
@expresses("OptionalHasElement", opset=15)
def _has_element(op: Writer) -> Outcome:
    """A tensor is there; what is not given is not."""
    given = bool(op.node.input) and bool(op.input(0))
    if given and _is_optional(op):
        return None
    return op.yields("Identity", op.constant(given, TensorProto.BOOL, "is_there" if given else "is_not_there"))


@lowers("OptionalGetElement", 18)
@expresses("OptionalGetElement", opset=15)
def _get_element(op: Writer) -> Outcome:
    """A tensor is its own element."""
    return None if _is_optional(op) else op.yields("Identity", op.input(0))
