"""Make initializers of Constant nodes whose element types Constant did not take yet."""

from __future__ import annotations

from reducelower.legalization.whole import Attempt, Changed
from reducelower.model.constants import tensor_of
from reducelower.model.document import Document
from reducelower.model.graph import graphs
from reducelower.model.numbers import FIRST_FLOATS
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.options import Settings
from reducelower.scope.ground import writes_initializers

__all__ = ["without_constants"]

_TAKES_ALL = 9


def without_constants(tried: Attempt, settings: Settings) -> Changed | None:
    """The model with initializers in place of its Constant nodes of other types than floats, below opset 9."""
    if (tried.plan.target.opset or 0) >= _TAKES_ALL or not writes_initializers(
        tried.source.message, settings.ir_version
    ):
        return None
    made = tried.source.copy()
    for _, graph in graphs(made):
        for at in reversed(range(len(graph.node))):
            node = graph.node[at]
            tensor = tensor_of(node) if node.op_type == "Constant" and node.domain in DEFAULT_DOMAINS else None
            if tensor is not None and tensor.data_type not in FIRST_FLOATS:
                graph.initializer.add().CopyFrom(tensor)
                graph.initializer[-1].name = node.output[0]
                del graph.node[at]
    return Changed(Document(made))
