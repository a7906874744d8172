"""The scope of one node of the model, which records every question of a rule with its answer.

Rules see blanks instead of operand names, such as ``⟦0⟧`` for the first input. A rule never learns the name of a
value, so its result is right for every node with the same answers to the same questions.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from onnx import TensorProto, TypeProto, numpy_helper

from reducelower.errors import Place, RefusedError
from reducelower.model.numbers import FIRST_FLOATS, value_key
from reducelower.model.schemas import element_type_name
from reducelower.scope.blanks import ALL_OPERANDS, Added, blank
from reducelower.scope.graph import GraphScope
from reducelower.scope.ground import Stored
from reducelower.scope.scope import Asking, Scope
from reducelower.types import Atoms, Known

if TYPE_CHECKING:
    from onnx import NodeProto

    from reducelower.model.numbers import Array

__all__ = ["NodeScope", "Question", "unheld"]


class Question(NamedTuple):
    """A question about a value, or about several or none of them.

    Attributes:
        name: the name of the question.
        value: the number of the value; some stand for something else, such as `ALL_OPERANDS`.
    """

    name: str
    value: int


_OF_COMPUTED: Mapping[str, str | bool] = {
    "is_read": False,
    "is_yielded": False,
    "made_by": "",
    "written_as": "dynamic",
}
"""The answers about a new value that nodes compute; all others are unknown."""


_CONSTANT_TAKES_ALL = 9
"""The first opset version whose Constant takes every element type, not floats only."""

_OPEN = object()
"""Stands for an answer that is not there yet."""


_ADDITIONS = (
    "added", "derived", "unmended", "zeros", "_numbers", "_made", "_last",
)  # fmt: skip
"""What a failed attempt leaves behind; what it asked stays in the trail."""


class NodeScope(Scope):
    """What rules may ask about a node of a graph, and what they add for it.

    Attributes:
        trail: every question with its answer.
        is_repeatable: whether the trail has every question.
        added: added constants by their blanks.
        derived: new names in order: stem, tail, name.
        operands: how many distinct operands the node has; 0 if it uses the names of the model.
        applied: the files and lines of the rules of the user's own that were applied.
        unmended: sentences about problems on the target runtime that no form avoids, each with whether it is about a
            form that was written, and not about a node that stays.
        zeros: ``heeded`` if the result asks at run time whether a dimension is zero, ``assumed`` if it would.
    """

    is_made = False

    def __init__(self, graph: GraphScope, operands: Mapping[str, tuple[int, str]] | None) -> None:
        """Open the scope of a node.

        `operands` maps each blank in the node to the operand's number and name. It is None if the node uses the
        names of the model, as nodes with subgraphs do.
        """
        self.graph = graph
        self.opset = graph.opset
        self.target_opset = graph.ground.opset
        self.trail: dict[Question, Hashable] = {}
        self.is_repeatable = operands is not None
        self.added: dict[str, Added] = {}
        self.derived: list[tuple[str, str, str]] = []
        self.unmended: dict[str, bool] = {}
        self.applied: list[Place] = []
        self.zeros: set[Literal["assumed", "heeded"]] = set()
        self.operands = len(operands or ())
        self._operands = operands
        self._numbers: dict[Hashable, str] = {}
        self._made: set[str] = set()
        self._last: dict[str, int] = {}

    @property
    def node_scope(self) -> NodeScope:
        """This scope, which nested scopes return as well."""
        return self

    def _ask_of_all(self, question: str) -> Any:
        """Ask a question about all operands together."""
        key = Question(question, ALL_OPERANDS)
        if key not in self.trail:
            assert self._operands is not None
            self.trail[key] = getattr(self.graph, question)(tuple(real for _, real in self._operands.values()))
        return self.trail[key]

    def is_new(self, name: str) -> bool:
        """Whether a rule added the value."""
        return name in self._made or name in self.added

    # Questions

    def ask(self, question: Asking | Literal["small_constant"], name: str) -> Any:
        """See `Scope.ask`; the trail records the answers. There is no other access to the graph.

        A refused question has no answer to record, for example if the data of a constant is damaged. The result for
        the node then holds for this model only.
        """
        if name in self._made or name in self.added:
            return self._of_new(question, name)
        operand = None if self._operands is None else self._operands.get(name)
        if operand is None:
            # The name is not an operand but a name of the model: the answer holds for this node only.
            self.is_repeatable = False
            answer = getattr(self.graph, question)(name)
        else:
            number, real = operand
            key = Question(question, number)
            answer = self.trail.get(key, _OPEN)
            if answer is _OPEN:
                try:
                    answer = self.trail[key] = getattr(self.graph, question)(real)
                except RefusedError:
                    self.is_repeatable = False
                    raise
        return answer.array if isinstance(answer, Stored) else answer

    def _of_new(self, question: str, name: str) -> Any:
        """An answer about a value that a rule added. If nodes compute it, their `BodyScope` knows more."""
        added = self.added.get(name)
        if added is None:
            return _OF_COMPUTED.get(question)
        if question == "written_as":
            return "initializer" if self.graph.ground.writes_initializers else "constant"
        answers: dict[str, Any] = {
            "constant": added.value,
            "element_type": added.tensor.data_type,
            "rank": added.value.ndim,
            "shape": added.value.shape,
        }
        return answers.get(question, _OF_COMPUTED.get(question))

    def small_constant(self, name: str) -> Array | None:
        """The value of a constant operand of few elements; None for other operands."""
        return self.ask("small_constant", name)  # type: ignore[no-any-return]

    def known(self, name: str) -> Known:
        """See `Scope.known`."""
        if name in self.added:
            return self.added[name].known
        if self._operands is None:
            return Known() if self.is_new(name) else self.graph.known(name)
        return self._facts.get(name) or Known()

    @cached_property
    def _facts(self) -> Mapping[str, Known]:
        """The facts about each operand."""
        assert self._operands is not None
        return dict(zip(self._operands, self._ask_of_all("known_of"), strict=True))

    @cached_property
    def atoms(self) -> Atoms:
        """Numbers new atoms, of sizes that replacement nodes compute, after those of the operands."""
        if self._operands is None:
            return self.graph.ground.resolver.atoms
        return Atoms(1 + max((atom for known in self._facts.values() for atom in known.atoms), default=-1))

    def never_zero(self) -> Collection[int]:
        """See `Scope.never_zero`."""
        return () if self._operands is None else frozenset(self._ask_of_all("never_zero"))

    def heeds_zero(self) -> bool:
        """See `Scope.heeds_zero`."""
        is_assumed = self.graph.ground.assumes_nonempty
        self.zeros.add("assumed" if is_assumed else "heeded")
        return not is_assumed

    def type_inside(self, node: NodeProto, number: int, name: str) -> TypeProto | None:
        """The inferred type of a value in a subgraph of the node; such nodes use the names of the model."""
        return self.graph.type_inside(node, number, name)

    # Additions

    def fresh(self, stem: str, tail: str) -> str:
        """A name for a new value."""
        if self._operands is None:
            name = self.graph.ground.names.fresh(stem, tail)
        else:
            plain = name = stem + tail
            number = self._last.get(plain, 1)
            while name in self._made:
                number += 1
                name = f"{plain}_{number}"
            self._last[plain] = number
            self.derived.append((stem, tail, name))
        self._made.add(name)
        return name

    def add_constant(self, value: Array, tail: str) -> str:
        """Add a constant and return its name."""
        key = value_key(value)
        if key not in self._numbers:
            name = self._numbers[key] = blank(f"c{len(self.added)}")
            tensor = numpy_helper.from_array(np.ascontiguousarray(value).reshape(value.shape))
            self.added[name] = Added(tail, tensor, value)
        return self._numbers[key]

    def check_constant(self, tensor: TensorProto) -> None:
        """Raise RefusedError if neither an initializer nor Constant nodes can hold the constant here."""
        takes_it = tensor.data_type in FIRST_FLOATS or self.target_opset >= _CONSTANT_TAKES_ALL
        if not (self.graph.ground.writes_initializers or takes_it):
            raise unheld(tensor.data_type)

    # Undo

    def mark(self) -> Mapping[str, Any]:
        """Return a point to roll back to if the next attempt fails."""
        return {name: copy(getattr(self, name)) for name in _ADDITIONS}

    def roll_back(self, mark: Mapping[str, Any]) -> None:
        """Undo every addition since the mark, to which nothing can be rolled back again."""
        self.__dict__.update(mark)


def unheld(element_type: int) -> RefusedError:
    """The refusal of a constant that neither a Constant node nor an initializer can hold."""
    return RefusedError(
        f"it needs a constant of type {element_type_name(element_type)}, which Constant does not take below opset 9",
        "allow IR version 4 with --ir-version auto",
    )
