"""The elementwise step of Reduce operators. Their boundary rules are text: `rules/versions/Reduce.onnxtxt`."""

from __future__ import annotations

from onnx import NodeProto

from reducelower.adapters.registry import Replacement, crossings
from reducelower.model.attributes import make_node
from reducelower.scope.body import AnyScope

__all__ = ["elementwise"]


def elementwise(node: NodeProto, scope: AnyScope) -> tuple[list[NodeProto], int]:
    """The nodes that replace a Reduce node that reduces no axis, and the opset version they are written for.

    They come from the boundary rule for opset versions that lack noop_with_empty_axes.
    """
    unreduced = make_node(node.op_type, node.input[:1], node.output, noop_with_empty_axes=1)
    unreduced.name, unreduced.doc_string = node.name, node.doc_string
    unreduced.metadata_props.extend(node.metadata_props)
    (crossing,) = [each for each in crossings(node.op_type, 18, 11) if each.rules and each.boundary >= 13]
    nodes = crossing.cross(unreduced, scope)
    assert isinstance(nodes, Replacement)
    return nodes, nodes.opset
