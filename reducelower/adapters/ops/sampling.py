"""GridSample and DFT across their versions.

Sources: https://onnx.ai/onnx/operators/onnx__GridSample.html (16, 20),
https://onnx.ai/onnx/operators/onnx__DFT.html (17, 20).
"""

from __future__ import annotations

from onnx import NodeProto

from reducelower.adapters.ops.grid_sample import written_out
from reducelower.adapters.registry import Outcome, lowers, raises
from reducelower.model.attributes import attribute_of, set_attribute, value_of
from reducelower.scope.scope import Scope

__all__: list[str] = []

_OLD_MODES = {"linear": "bilinear", "cubic": "bicubic"}
_NEW_MODES = {old: new for new, old in _OLD_MODES.items()}


@lowers("GridSample", 20)
def _lower_grid_sample(node: NodeProto, scope: Scope) -> Outcome:
    """Modes had the names of their kind for images, which is all there was."""
    if scope.needed_rank(node.input[0]) != 4:
        return written_out(node, scope)
    mode = value_of(node, "mode", "linear")
    set_attribute(node, "mode", _OLD_MODES.get(mode, mode))
    return None


@raises("GridSample", 20)
def _raise_grid_sample(node: NodeProto, scope: Scope) -> Outcome:
    mode = value_of(node, "mode", "bilinear")
    set_attribute(node, "mode", _NEW_MODES.get(mode, mode))
    return None


@lowers("DFT", 20)
def _lower_axis(node: NodeProto, scope: Scope) -> Outcome:
    """An absent axis meant the last one of the signal, and means the second one before 20."""
    if len(node.input) > 2 and node.input[2]:
        return None
    set_attribute(node, "axis", -2)
    return None


@raises("DFT", 20)
def _raise_axis(node: NodeProto, scope: Scope) -> Outcome:
    if attribute_of(node, "axis") is None:
        set_attribute(node, "axis", 1)
    return None
