"""DepthToSpace and SpaceToDepth with the order of channels (mode) that an older version does not have.

Both orders cut the same blocks; they number the channels differently, so that a Gather over the channels turns one
into the other.

Source: https://onnx.ai/onnx/operators/onnx__DepthToSpace.html (1, 11),
https://onnx.ai/onnx/operators/onnx__SpaceToDepth.html (1, 28).
"""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.registry import Outcome, lowers
from reducelower.errors import RefusedError
from reducelower.model.attributes import value_of
from reducelower.scope.scope import Scope

__all__: list[str] = []


def _channels(node: NodeProto, scope: Scope) -> int:
    shape = scope.shape(node.input[0])
    if shape is None or len(shape) != 4 or shape[1] is None:
        raise RefusedError(
            "it uses mode=CRD on data with an unknown number of channels",
            f"opset {_SINCE[node.op_type]} is the oldest that has the mode",
        )
    return shape[1]


_SINCE = {"DepthToSpace": 11, "SpaceToDepth": 28}


@lowers("DepthToSpace", 11)
def _lower_depth_to_space(node: NodeProto, scope: Scope) -> Outcome:
    """CRD numbers channels (depth, block), DCR (block, depth)."""
    if value_of(node, "mode", "DCR") == "DCR":
        return None
    block = int(value_of(node, "blocksize"))
    order = np.arange(_channels(node, scope)).reshape(-1, block * block).T.reshape(-1)
    body = Writer(node, scope)
    turned = body.add("Gather", node.input[0], body.constant(order, TensorProto.INT64, "channels"), axis=1)
    return body.yields("DepthToSpace", turned, blocksize=block)


@lowers("SpaceToDepth", 28)
def _lower_space_to_depth(node: NodeProto, scope: Scope) -> Outcome:
    """CRD numbers results (channel, block), DCR (block, channel)."""
    if value_of(node, "mode", "DCR") == "DCR":
        return None
    block = int(value_of(node, "blocksize"))
    channels = _channels(node, scope)
    order = np.arange(channels * block * block).reshape(block * block, channels).T.reshape(-1)
    body = Writer(node, scope)
    blocks = body.add("SpaceToDepth", node.input[0], blocksize=block)
    return body.yields("Gather", blocks, body.constant(order, TensorProto.INT64, "channels"), axis=1)
