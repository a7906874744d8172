"""The memo: the result of one node, reused for every node about which the same questions have the same answers.

A large model consists of a few kinds of nodes. While rules work on a node, its scope records each question about the
surroundings with its answer. The signature (operator, attributes, and how the operands are arranged) leads to the first
question, each answer leads to the next, and the last one to the result of an earlier node with the same answers. If a
node gives a new answer, rules work on it, and its answers add a branch.

There are two entry points: `Memo.repeat` applies known results, and `Memo.learn` adds new ones. Results outlast the run
(see `memory`), since the models of a folder have similar layers. The memo never changes the output, only the time it
takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from reducelower.errors import RefusedError
from reducelower.legalization.edits import Edit
from reducelower.legalization.memo.memory import Memory, Places
from reducelower.legalization.memo.outcome import NOTHING, Outcome, entry_of, in_blanks, scope_of
from reducelower.legalization.memo.reading import ReadNode, Signature, read_node
from reducelower.legalization.memo.writing import Writing, put_in_own_names, put_refusal, real_names
from reducelower.model.wire import INPUT, NAME, OUTPUT
from reducelower.scope.blanks import ALL_OPERANDS
from reducelower.scope.graph import GraphScope
from reducelower.scope.node import NodeScope
from reducelower.scope.trail import Branch, learn

__all__ = [
    "NOTHING",
    "Memo",
    "Memory",
    "Outcome",
    "ReadNode",
    "entry_of",
    "in_blanks",
    "put_in_own_names",
    "read_node",
    "real_names",
    "scope_of",
]


_Tree: TypeAlias = "Branch | Outcome"
"""What is known of nodes with equal operator and attributes: a question with what follows each answer, or a result."""

_NO_TREES: Mapping[bytes, _Tree] = {}

_UNCOMMON = 128
"""Lengths that take more than one byte."""

# The common form: one or two inputs and one output, all different, with or without a node name.
_COMMON: Mapping[tuple[bool, bool], Signature] = {
    (two, named): (2, (0, 1, 2), named) if two else (1, (0, 1), named)
    for two in (True, False)
    for named in (True, False)
}


class Memo:
    """The results of nodes, in one run over one model.

    Attributes:
        doubts: operators of rewrites that have to be checked in the context of the whole model.
        foreign: domain and operator of the nodes outside the default domain.
        unmended: sentences about problems on the target runtime that no form avoids, in order of appearance.
    """

    def __init__(self, memory: Memory, *, remembers: bool = True) -> None:
        """Start with the results in `memory`.

        New ones are added only if `remembers`; otherwise every node is worked out by itself.
        """
        self.doubts: list[str] = []
        self.foreign: set[tuple[str, str]] = set()
        self.unmended: dict[str, None] = {}
        self._remembers = remembers
        self._memory = memory
        self._writings: dict[GraphScope, dict[Outcome, Writing]] = {}

    def _trees_in(self, stage: str, graph: GraphScope) -> Places:
        # How constants are added and types stated is the same for all nodes of a graph, so it is not asked for each.
        way = graph.writes_initializers, graph.is_graph, graph.is_function
        return self._memory.places.setdefault((stage, graph.opset, *way), {})

    def repeat(self, stage: str, edit: Edit, nodes: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, ReadNode]]:
        """Apply known results to nodes of one graph or function body; yield position and names of every other node.

        Each stage has its own results. The nodes must not have been edited since their bytes were taken. The caller may
        `learn` a yielded node before it asks for the next one.
        """
        graph = edit.scope
        trees = self._trees_in(stage, graph)
        writings = self._writings.setdefault(graph, {})
        common = {form: trees.setdefault(signature, {}) for form, signature in _COMMON.items()}
        for index, data in nodes:
            tree: _Tree | None = None
            try:
                # The same as `read_node`, but for the common form only, in a third of the time.
                first = data[1]
                lengths = first or _UNCOMMON
                first_end = inputs_end = first + 2
                two = data[first_end] == INPUT
                if two:
                    second = data[first_end + 1]
                    lengths |= second or _UNCOMMON
                    inputs_end += 2 + second
                output = data[inputs_end + 1]
                lengths |= output or _UNCOMMON
                names_end = output_end = inputs_end + 2 + output
                named = data[output_end] == NAME
                if named:
                    name = data[output_end + 1]
                    lengths |= name or _UNCOMMON
                    names_end += 2 + name
                rest = data[names_end:]
                tree = common[two, named].get(rest)
            except IndexError:
                pass
            # The ends match only if every length is a single byte and every field has the expected tag.
            is_common = tree is not None and lengths < _UNCOMMON and data[0] == INPUT and data[inputs_end] == OUTPUT
            if is_common and two:
                first_input, second_input = data[2:first_end], data[first_end + 2 : inputs_end]
                is_common = first_input != second_input
                names = [first_input, second_input, data[inputs_end + 2 : output_end], data[output_end + 2 : names_end]]
            elif is_common:
                names = [data[2:first_end], data[inputs_end + 2 : output_end], data[output_end + 2 : names_end]]
            if is_common:
                read = ReadNode(names, _COMMON[two, named], rest, b"")
            else:
                read = read_node(data)
                tree = trees.get(read.signature, _NO_TREES).get(read.rest)
            outcome = _follow(tree, graph, read.names) if isinstance(tree, Branch) else tree
            if outcome is None:
                yield index, read
            elif outcome in writings:
                writings[outcome].put(edit, index, read)
            elif outcome is not NOTHING:
                self.put(outcome, edit, index, read)

    def learn(self, stage: str, graph: GraphScope, read: ReadNode, scope: NodeScope | None, outcome: Outcome) -> None:
        """Add the result of a node."""
        if not self._remembers or not (scope is None or scope.is_repeatable):
            return
        place = self._trees_in(stage, graph).setdefault(read.signature, {})
        trail = {} if scope is None else scope.trail
        if learn(place, read.rest, trail, outcome, _ANSWERING):
            self._memory.outcomes += 1

    def put(self, outcome: Outcome, edit: Edit, index: int, read: ReadNode) -> None:
        """Apply an outcome to a node."""
        if outcome is NOTHING:
            return
        if outcome.domain:
            self.foreign.add((outcome.domain, outcome.op_type))
            return
        if outcome.refusal is not None:
            put_refusal(outcome, edit, index, read)
            return
        self.unmended.update(dict.fromkeys(outcome.unmended))
        writings = self._writings.setdefault(edit.scope, {})
        writing = writings.get(outcome)
        if writing is None:
            writing = writings[outcome] = Writing(outcome, edit.scope, read, self.doubts)
        writing.put(edit, index, read)


_ANSWERING = partial(getattr, GraphScope)


def _follow(branch: Branch, graph: GraphScope, names: Sequence[bytes]) -> Outcome | None:
    """The outcome of an earlier node with the same answers; None if there is none."""
    tree: _Tree | None = branch
    number: int | None = None
    operand: str | tuple[str, ...] = ""
    try:
        while isinstance(tree, Branch):
            if tree.value != number:
                number = tree.value
                is_of_all = number == ALL_OPERANDS
                operand = tuple(map(bytes.decode, names[:-1])) if is_of_all else names[number].decode()
            tree = tree.answers.get(tree.answer(graph, operand))
    except RefusedError:
        return None
    return tree
