"""Rewrites as data: a node in blanks, the answers about it, and the nodes that replace it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from onnx import NodeProto, TensorProto

from reducelower.model.document import Document
from reducelower.model.numbers import Array

__all__ = ["Applied", "Entry", "Step"]


@dataclass(frozen=True, eq=False)
class Entry:
    """One kind of rewrite: for all inputs that fit the answers, the node equals its replacement.

    Both sides have blanks for operands, such as ``⟦0⟧``.

    Attributes:
        node: the node, at its opset version.
        nodes: the nodes that replace it, at the target's opset version.
        opsets: both versions.
        constants: the values of constant operands that the rule asked for.
        added: new constants that the replacement reads.
        answers: every other question: its name, the operand (empty for a question about the place), the answer.
    """

    node: NodeProto
    nodes: Sequence[NodeProto]
    opsets: tuple[int, int]
    constants: Mapping[str, Array]
    added: Mapping[str, TensorProto]
    answers: Sequence[tuple[str, str, Hashable]]


@dataclass(frozen=True, eq=False)
class Applied:
    """One node that was rewritten.

    Attributes:
        graph: graph path.
        index: position of the node in its graph.
        entry: its rewrite; None for a node with subgraphs, which is not written in blanks.
        names: the node's names by blank.
    """

    graph: str
    index: int
    entry: Entry | None = None
    names: Mapping[str, str] | None = None


@dataclass(frozen=True, eq=False)
class Step:
    """One pass over a model.

    Attributes:
        source: the model before it; large initializers may be without values.
        applied: the rewrites, in order; None for a pass without entries.
    """

    source: Document
    applied: Sequence[Applied] | None
