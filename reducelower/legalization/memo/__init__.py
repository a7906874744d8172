"""The memo: the result of one node, reused for every node about which the same questions have the same answers.

A large model consists of a few kinds of nodes. While rules work on a node, its scope records each question about the
surroundings with its answer. The signature (operator, attributes, and how the operands are arranged) leads to the first
question, each answer leads to the next, and the last one to the result of an earlier node with the same answers. If a
node gives a new answer, rules work on it, and its answers add a branch.

There are two entry points: `Memo.repeat` applies known results, and `Memo.learn` adds new ones. Results outlast the
run, since the models of a folder have similar layers: a run takes the memory for runs of its kind and returns it at the
end. So two runs never use the same memory at once, even in different threads. The memo never changes the output, only
the time it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any, TypeAlias

from reducelower.errors import RefusedError
from reducelower.legalization.edits import Edit
from reducelower.legalization.memo.outcome import NOTHING, Outcome
from reducelower.legalization.memo.reading import Key, ReadNode, read_node
from reducelower.legalization.memo.writing import Writing, in_own_names, refusal
from reducelower.scope.blanks import ALL_OPERANDS
from reducelower.scope.graph import GraphScope
from reducelower.scope.ground import Values
from reducelower.scope.node import NodeScope, Question

__all__ = [
    "Branch", "Memo", "Memory", "Outcome", "ReadNode", "forget", "memory_for", "read_node",
]  # fmt: skip


# Decision trees over questions and answers


class Branch:
    """A question, the method that answers it, and the next branch or the result for each answer."""

    __slots__ = ("answer", "answers", "question", "value")

    def __init__(self, question: Question) -> None:
        self.question = question
        self.value = question.value
        self.answer: Callable[[GraphScope, Any], Any] = getattr(GraphScope, question.name)
        self.answers: dict[Hashable, Any] = {}


def _learn(place: dict[Any, Any], key: Hashable, trail: Mapping[Question, Hashable], result: object) -> bool:
    """Store a result at the end of the branches that start at `place[key]`; return whether it was stored.

    It is not stored if another question follows the same answers: something else decides then, so no node may reuse it.
    """
    for question, answer in trail.items():
        branch = place.get(key)
        if branch is None:
            branch = place[key] = Branch(question)
        elif branch.__class__ is not Branch or branch.question != question:
            return False
        place, key = branch.answers, answer
    place[key] = result
    return True


_Tree: TypeAlias = "Branch | Outcome"
"""What is known of nodes with equal operator and attributes: a question with what follows each answer, or a result."""


_KINDS = 4
"""How many kinds of runs are remembered; the least recent is dropped."""

_OUTCOMES = 2000
_BYTES = 16 << 20
"""The most bytes to keep for one kind of run; a memory that has grown larger is dropped."""


class Memory:
    """What runs of one kind learned: outcomes by what decides them for all nodes of a graph; numbers of values."""

    def __init__(self) -> None:
        self.places: dict[Hashable, dict[Key, _Tree]] = {}
        self.values = Values()
        self.outcomes = 0


_kept: dict[Hashable, Memory] = {}
_lock = Lock()


@contextmanager
def memory_for(kind: Hashable) -> Iterator[Memory]:
    """The memory for runs of a kind, for the duration of one run.

    The kind is everything that determines results apart from the questions about nodes; None keeps nothing.
    """
    with _lock:
        memory = _kept.pop(kind, None) or Memory()
    try:
        yield memory
    finally:
        if kind is not None and memory.outcomes <= _OUTCOMES and memory.values.size <= _BYTES:
            with _lock:
                _kept[kind] = memory
                while len(_kept) > _KINDS:
                    del _kept[next(iter(_kept))]


def forget() -> None:
    """Drop all memories."""
    with _lock:
        _kept.clear()


class Memo:
    """The results of nodes, in one run over one model."""

    def __init__(self, memory: Memory, kind: Hashable, *, remembers: bool = True) -> None:
        """Start with the results in `memory` for a kind of runs: what decides them for all nodes of a model.

        New ones are added only if `remembers`; otherwise every node is worked out by itself.
        """
        self._known: dict[Key, _Tree] = memory.places.setdefault(kind, {})
        self._remembers = remembers
        self._memory = memory
        self._writings: dict[tuple[Edit, Outcome], Writing] = {}

    def repeat(self, edit: Edit, nodes: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, ReadNode]]:
        """Apply known results to nodes of one graph; yield position and names of every other node.

        The nodes must not have been edited since their bytes were taken. The caller may `learn` a yielded node before
        it asks for the next one.
        """
        known = self._known
        for index, data in nodes:
            read = read_node(data)
            tree = known.get(read.key)
            outcome = _follow(tree, edit.scope, read.names) if isinstance(tree, Branch) else tree
            if outcome is None:
                yield index, read
            elif outcome is not NOTHING:
                self.put(outcome, edit, index, read)

    def learn(self, read: ReadNode, scope: NodeScope, outcome: Outcome) -> None:
        """Add the result of a node."""
        if self._remembers and scope.is_repeatable and _learn(self._known, read.key, scope.trail, outcome):
            self._memory.outcomes += 1

    def put(self, outcome: Outcome, edit: Edit, index: int, read: ReadNode) -> None:
        """Apply an outcome to a node."""
        if outcome is NOTHING:
            return
        if outcome.refusal is not None:
            edit.refused[index] = refusal(outcome, edit.scope.path, index, read)
        elif not outcome.operands:
            edit.rewrites[index] = in_own_names(outcome, edit, index)
        else:
            writing = self._writings.get((edit, outcome))
            if writing is None:
                writing = self._writings[edit, outcome] = Writing(outcome, edit, read)
            edit.rewrites[index] = writing.rewrite(index, read)


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
