"""Resolves facts about a value from the nodes that compute it: each question separately, once per run.

Element type, rank, shape and contents of a value are four questions. Each is followed back only as far as its own
answer needs: the rank of a sum needs two ranks and no size. The answer comes from the rules of the operator, else from
onnx's own inference of that one node. Stated types only fill what nodes leave open, since exporters leave stale shapes
in value_info.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any
from weakref import proxy

from onnx import TypeProto, helper

from reducelower.types.answers import Answers, Value
from reducelower.types.call import Call
from reducelower.types.graphs import Graph
from reducelower.types.known import Known, Question, elements_of
from reducelower.types.sizes import Atoms

__all__ = ["Resolver"]

_DEEPEST = 50
"""The depth of recursion; a deeper value is resolved first, from an explicit stack."""

_OPEN = object()
"""Stands for an answer that is not there yet."""


class _FirstError(Exception):
    """Another question has to be answered first."""

    def __init__(self, question: Question, value: Value) -> None:
        super().__init__()
        self.wanted = question, value


class Resolver(Answers):
    """Resolves facts about the values of one model."""

    def __init__(self, atoms: Atoms | None = None) -> None:
        """Start with nothing; `atoms` numbers new atoms."""
        self.atoms = atoms or Atoms()
        self._values: dict[tuple[Hashable, str], Value] = {}
        self._depth = 0
        self._weakly: Resolver = proxy(self)  # a reference cycle would keep the model until garbage collection

    def known(self, name: str, graph: Graph) -> Known:
        """The sizes of a value, and its contents if they may be sizes."""
        shape, contents = self.ask(graph, "shape", name), self.ask(graph, "contents", name)
        return Known(shape, None if contents is None else elements_of(contents))

    def clear(self) -> None:
        """Forget all answers."""
        self._values.clear()

    def forget(self, name: str, graph: Graph) -> None:
        """Forget the answers about a value, which is a constant from now on."""
        self._values.pop((graph.home(name).place, name), None)

    def type(self, name: str, graph: Graph, *, may_lack_rank: bool = False) -> TypeProto | None:
        """The type of a value, with the model's names for sizes; None if the element type is unknown, or the rank
        without `may_lack_rank`."""
        element_type = self.ask(graph, "element_type", name)
        if not element_type:
            container = self.ask(graph, "container", name)
            return TypeProto.FromString(container) if container else None
        shape = self.ask(graph, "shape", name)
        if shape is None:
            return helper.make_tensor_type_proto(element_type, None) if may_lack_rank else None
        sizes = [size if isinstance(size, int) else self.atoms.name(size) or None for size in shape]
        return helper.make_tensor_type_proto(element_type, sizes)

    # Questions

    def _add_value(self, home: Graph, name: str) -> Value:
        """Add a value, with all outputs of its node, before the first question about it."""
        place, node = home.place, home.producer(name)
        held = home.held(name) if node is None or node.op_type == "Constant" else None
        if held is not None or node is None:
            self._values[place, name] = Value(home, name, held)
        else:
            made = Call(node, home, self._weakly)
            for at, output in enumerate(node.output):
                self._values[place, output] = Value(home, output, None, made, at)
        return self._values[place, name]

    def ask(self, graph: Graph, question: Question, name: str) -> Any:
        """The answer to a question about a value of a graph or of an enclosing one."""
        home = graph if graph.around is None else graph.home(name)
        value = self._values.get((home.place, name)) or self._add_value(home, name)
        answer = value.answers.get(question, _OPEN)
        return self.answer(question, value) if answer is _OPEN else answer

    def value(self, graph: Graph, name: str) -> Value:
        """See `Answers.value`."""
        home = graph if graph.around is None else graph.home(name)
        return self._values.get((home.place, name)) or self._add_value(home, name)

    def answer(self, question: Question, value: Value) -> Any:
        """See `Answers.answer`."""
        answer = value.answers.get(question, _OPEN)
        if answer is not _OPEN:
            return answer
        if self._depth:
            return self._worked_out(question, value)
        try:
            return self._worked_out(question, value)
        except _FirstError as first:
            return self._answer_in_turn([(question, value), first.wanted])

    def _answer_in_turn(self, waiting: list[tuple[Question, Value]]) -> Any:
        """Answer with an explicit stack, since the graph may be deeper than Python's recursion limit."""
        begun = set(waiting)
        while True:
            try:
                answer = self._worked_out(*waiting[-1])
            except _FirstError as first:
                if first.wanted not in begun:
                    begun.add(first.wanted)
                    waiting.append(first.wanted)
                    continue
                question, value = waiting[-1]
                answer = value.answers[question] = None  # it is in a cycle
            waiting.pop()
            if not waiting:
                return answer

    def _worked_out(self, question: Question, value: Value) -> Any:
        if self._depth == _DEEPEST:
            raise _FirstError(question, value)
        answers = value.answers
        answers[question] = None  # for a value in a cycle
        self._depth += 1
        try:
            answers[question] = self.work_out(question, value)
        except BaseException:
            del answers[question]
            raise
        finally:
            self._depth -= 1
        return answers[question]
