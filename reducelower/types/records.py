"""What the resolver keeps of nodes and values, without their graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onnx import NodeProto

from reducelower.model.schemas import plain_domain
from reducelower.model.value_info import StatedType
from reducelower.types.borders import HOLDERS
from reducelower.types.graphs import Graph, Held
from reducelower.types.known import Question
from reducelower.types.telling import Told

__all__ = ["NodeRecord", "ValueRecord"]


class NodeRecord:
    """A node with what is told of all of its outputs together, which may be thousands.

    Attributes:
        node: the node.
        domain: its domain; empty for either spelling of the default one.
        inside: its subgraphs or the function it calls, as far as they are followed; None until it is asked.
        inputs: what onnx's inference was told of its inputs.
        told: what it then told of the outputs.
    """

    __slots__ = ("domain", "inputs", "inside", "node", "told")

    def __init__(self, node: NodeProto) -> None:
        self.node = node
        self.domain = plain_domain(node.domain)
        holds_none = not self.domain and node.op_type not in HOLDERS
        self.inside: Sequence[tuple[Graph, Sequence[str]]] | None = () if holds_none else None
        self.inputs: Sequence[Told | None] | None = None
        self.told: Sequence[Told] = ()


class ValueRecord:
    """What is known of a value, without its graph: that would keep the weights until the garbage collector runs.

    Attributes:
        held: what the graph knows of it without any node; None if nothing.
        stated: what the graph states of it.
        made: the node that computes it; None if no node does.
        place: its place among the outputs of that node.
        answers: what was worked out, by question.
    """

    __slots__ = ("answers", "held", "made", "place", "stated")

    def __init__(self, held: Held | None, stated: StatedType, made: NodeRecord | None = None, place: int = 0) -> None:
        self.held = held
        self.stated = stated
        self.made = made
        self.place = place
        self.answers: dict[Question, Any] = {}
