"""Check the output: the nodes of each distinct rewrite, and the whole model only if a rewrite is in doubt.

Running onnx's checker over the whole model takes several times as long as converting it. Untouched nodes are as valid
as before, and equal nodes are rewritten equally, so it is enough to check each distinct rewrite.
"""

from __future__ import annotations

from onnx import checker
from onnx.shape_inference import InferenceError

from reducelower.legalization.memo import Outcome
from reducelower.model.document import Document
from reducelower.model.graph import subgraphs
from reducelower.model.inference.protected import infer_shapes
from reducelower.model.skeleton import skeleton

__all__ = ["find_invalid_node", "new_objection", "objects_to_stated"]

_IR_VERSION = 10
"""An IR version that allows everything a rule may write."""


def find_invalid_node(outcome: Outcome, opset: int) -> str:
    """The checker's objection to a node of an outcome, by its schema; empty if there is none."""
    context = checker.DEFAULT_CONTEXT.__class__()
    context.ir_version = _IR_VERSION
    for node in outcome.nodes or ():
        if any(True for _ in subgraphs(node)):
            continue  # its subgraphs read outer values, which are not here
        context.opset_imports = {"": opset, node.domain: opset}
        try:
            checker.check_node(node, context)
        except checker.ValidationError as error:
            return str(error).splitlines()[0]
    return ""


def objects_to_stated(document: Document) -> bool:
    """Whether the checker objects to a model by its shapes; to sizes below zero, which are unknown ones, too."""
    message = document.message
    bare = skeleton(message)
    for field in ("output", "value_info"):
        bare.graph.ClearField(field)
        getattr(bare.graph, field).extend(getattr(message.graph, field))
    try:
        infer_shapes(bare, check_type=True, strict_mode=True)
    except InferenceError:
        return True
    return False


def new_objection(before: Document, after: Document) -> str:
    """An objection of strict shape inference to `after` that it does not have to `before`; empty if there is none."""
    return after.objection if after.objection and not before.objection else ""
