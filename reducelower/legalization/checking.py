"""Whether what was written is valid: the nodes of each distinct rewrite, and the whole model where one is in doubt.

To run onnx's checker over a whole model takes several times as long as to convert it. What no rule touched is as valid
as it was, and like nodes are written alike, so a look at each distinct rewrite tells what to look into.
"""

from __future__ import annotations

from onnx import ModelProto, checker

from reducelower.legalization.memo import Outcome
from reducelower.model.graph import subgraphs
from reducelower.model.onnx_inference import infer_shapes
from reducelower.model.skeleton import skeleton
from reducelower.model.text import one_line

__all__ = ["contradicts_inference", "objection", "wrong_node"]

_IR_VERSION = 10
"""An IR version whose models may hold whatever a rule writes."""


def wrong_node(outcome: Outcome, opset: int) -> str:
    """What the checker objects to in one of the nodes of an outcome, by its schema; empty if nothing."""
    context = checker.DEFAULT_CONTEXT.__class__()
    context.ir_version = _IR_VERSION
    for node in outcome.nodes or ():
        if any(True for _ in subgraphs(node)):
            continue  # what its graphs read stands around it
        context.opset_imports = {"": opset, node.domain: opset}
        try:
            checker.check_node(node, context)
        except checker.ValidationError as error:
            return str(error).splitlines()[0]
    return ""


def contradicts_inference(before: ModelProto, after: ModelProto) -> str:
    """What strict shape inference objects to in a model and not in the one it came of; empty if nothing."""
    found = objection(skeleton(after))
    return "" if not found or objection(skeleton(before)) else found


def objection(model: ModelProto) -> str:
    """What strict shape inference objects to in a model; empty if nothing."""
    try:
        infer_shapes(model, check_type=True, strict_mode=True)
    except Exception as error:  # inference has several kinds of its own
        return one_line(error)
    return ""
