"""Rewrites as data: a node in blanks, what was asked about it, and the nodes in its place."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from onnx import NodeProto, TensorProto

from reducelower.model.document import Document
from reducelower.model.numbers import Array

__all__ = ["Applied", "Entry", "Step"]


@dataclass(frozen=True, eq=False)
class Entry:
    """One kind of rewrite: for all inputs that fit the answers, the node equals what replaces it.

    Operands go by blanks, such as ``⟦0⟧``, on both sides.

    Attributes:
        node: the node, at its opset version.
        nodes: the nodes in its place, at the target's opset version.
        opsets: both versions.
        constants: the values of operands that were asked for and are constant.
        added: constants that the nodes read besides.
        adopted: the values of outputs that a constant holds from now on.
        derived: the names of values inside that are new.
        answers: every other question: its name, the operand (empty for one about the place), the answer.
        label: what answered for it, in reports; empty where nothing is told of it.
    """

    node: NodeProto
    nodes: Sequence[NodeProto]
    opsets: tuple[int, int]
    constants: Mapping[str, Array]
    added: Mapping[str, TensorProto]
    adopted: Mapping[str, TensorProto]
    derived: frozenset[str]
    answers: Sequence[tuple[str, str, Hashable]]
    label: str


@dataclass(frozen=True, eq=False)
class Applied:
    """One node that was rewritten.

    Attributes:
        graph: graph path.
        index: position of the node in its graph.
        entry: what it became; None for a node with graphs inside, which is not written in blanks.
        names: the node's names by blanks.
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
        applied: the rewrites, in order; None of a pass that is not made of entries.
    """

    source: Document
    applied: Sequence[Applied] | None
