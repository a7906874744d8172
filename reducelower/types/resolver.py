"""Resolves facts about a value from the nodes that compute it: each question separately, once per run.

Element type, rank, shape and contents of a value are four questions. Each is followed back only as far as its own
answer needs: the rank of a sum needs two ranks and no size. The answer comes from the rules of the operator, else from
onnx's own inference of that one node. Stated types only fill what nodes leave open, since exporters leave stale shapes
in value_info.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property, partial
from math import prod
from typing import Any
from weakref import proxy

import numpy as np
from onnx import TypeProto, helper
from onnx.numpy_helper import from_array

from reducelower.model.numbers import Array
from reducelower.types.arithmetic import is_symbolic
from reducelower.types.borders import across
from reducelower.types.call import Call, Value
from reducelower.types.contents import evaluated, has_rule, tensor
from reducelower.types.contrib import rank_of_output
from reducelower.types.element_types import element_type_by_readers, element_type_of_output
from reducelower.types.graphs import Constant, Graph
from reducelower.types.known import COUNTING, LONGEST, Known, Question, Shape, elements_of
from reducelower.types.node_inference import NOTHING, Facts, NodeInference, can_infer
from reducelower.types.shapes import SHAPES, keeps_axes, rule
from reducelower.types.sizes import Atoms

__all__ = ["Resolver"]

_DEEPEST = 50
"""The depth of recursion; a deeper value is resolved first, from an explicit stack."""

_OPEN = object()
"""Stands for an answer that is not there yet."""

_OF_SIZES = ("Shape", "Size")
"""Operators that read sizes only."""


class _FirstError(Exception):
    """Another question has to be answered first: its arguments are that question and the value."""


class Resolver:
    """Resolves facts about the values of one model."""

    def __init__(self, atoms: Callable[[], Atoms] = Atoms) -> None:
        """Start with nothing; `atoms` is called when the first one is needed."""
        self._new_atoms = atoms
        self._values: dict[tuple[Hashable, str], Value] = {}
        self._inference = NodeInference()
        self._depth = 0
        self._weakly: Resolver = proxy(self)  # a reference cycle would keep the model until garbage collection

    @cached_property
    def atoms(self) -> Atoms:
        """Numbers new atoms."""
        return self._new_atoms()

    def ask(self, graph: Graph, question: Question, name: str) -> Any:
        """The answer to a question about a value of a graph or of an enclosing one."""
        value = self._values.get((graph.place, name)) or self._found(graph, name)
        answer = value.answers.get(question, _OPEN)
        if answer is not _OPEN:
            return answer
        return self._work_out(question, value) if self._depth else self._answer(question, value)

    def known(self, name: str, graph: Graph) -> Known:
        """The sizes of a value, and its contents if they may be sizes."""
        shape, contents = self.ask(graph, "shape", name), self.ask(graph, "contents", name)
        return Known(shape, None if contents is None else elements_of(contents))

    def type(self, name: str, graph: Graph, *, may_lack_rank: bool = False) -> TypeProto | None:
        """The type of a value, with the model's names for sizes; None if the element type is unknown, or the rank
        without `may_lack_rank`."""
        element_type = self.ask(graph, "element_type", name)
        if not element_type:
            container = self.ask(graph, "container", name)
            return TypeProto.FromString(container) if container else None
        shape = self.ask(graph, "shape", name)
        if shape is None and not may_lack_rank:
            return None
        sizes = [size if isinstance(size, int) else self.atoms.name(size) or None for size in shape or ()]
        return helper.make_tensor_type_proto(element_type, None if shape is None else sizes)

    def clear(self) -> None:
        """Forget all answers."""
        self._values.clear()

    # Questions

    def _found(self, graph: Graph, name: str) -> Value:
        """A value of a graph or of an enclosing one, before the first question about it there."""
        home = graph.home(name)
        if (home.place, name) not in self._values:
            self._add(home, name)
        value = self._values[graph.place, name] = self._values[home.place, name]
        return value

    def _add(self, home: Graph, name: str) -> None:
        """Add a value of a graph, with all outputs of its node."""
        node = home.producer(name)
        held = home.held(name) if node is None or node.op_type == "Constant" else None
        if held is not None or node is None:
            self._values[home.place, name] = Value(home, name, held)
            return
        call = Call(node, home, self._weakly)
        for place, output in enumerate(node.output):
            self._values[home.place, output] = Value(home, output, None, call, place)

    def about(self, value: Value, question: Question) -> Any:
        """The answer to a question that another one about the same value needs."""
        answer = value.answers.get(question, _OPEN)
        return self._work_out(question, value) if answer is _OPEN else answer

    def _answer(self, question: Question, value: Value) -> Any:
        """Answer a question that no other one needs; an explicit stack serves graphs deeper than Python recurses."""
        answer, waiting = None, [(question, value)]
        while waiting:
            question, value = waiting[-1]
            try:
                answer = self._work_out(question, value)
            except _FirstError as first:
                if first.args not in waiting:
                    waiting.append((first.args[0], first.args[1]))
                    continue
                answer = value.answers[question] = None  # it is in a cycle
            waiting.pop()
        return answer

    def _work_out(self, question: Question, value: Value) -> Any:
        if self._depth == _DEEPEST:
            raise _FirstError(question, value)
        answers = value.answers
        answers[question] = None  # for a value in a cycle
        self._depth += 1
        try:
            answer = _RULES[question](self, value) if value.held is None else getattr(value.held, question)
        except BaseException:
            del answers[question]
            raise
        finally:
            self._depth -= 1
        if question == "shape" and answer is not None and None in answer:
            place = value.home.place, value.name  # each unknown size becomes an atom
            answer = tuple([self.atoms((*place, axis)) if size is None else size for axis, size in enumerate(answer)])
        answers[question] = answer
        return answer

    # The answer to each question, for values that are not constant

    def _element_type(self, value: Value) -> int | None:
        stated, call = value.stated, value.call
        if stated.element_type or stated.container:
            return stated.element_type or None
        element_type: int | None = across("element_type", value, self.ask) if value.is_at_border else None
        if call is not None and not element_type:
            element_type = element_type_of_output(call, value.place) or self._inferred(call, value.place).element_type
        return element_type or element_type_by_readers(value.home, value.name, partial(self.ask, value.home)) or None

    def _container(self, value: Value) -> bytes | None:
        container: bytes | None = value.stated.container
        if not container and value.is_at_border:
            container = across("container", value, self.ask)
        if not container and value.call is not None:
            container = self._inferred(value.call, value.place).container
        return container or None

    def _rank(self, value: Value) -> int | None:
        if "shape" not in value.answers:
            rank: int | None = across("rank", value, self.ask) if value.is_at_border else None
            if rank is None and value.call is not None:
                rank = rank_of_output(value.call, value.place)
            if rank is not None:
                return rank
        shape = self.about(value, "shape")
        return None if shape is None else len(shape)

    def _shape(self, value: Value) -> Shape | None:
        """The shape, with None for unknown sizes."""
        call = value.call
        shape: Shape | None = None
        if value.is_at_border:
            shape = across("shape", value, self.ask)
        elif call is not None:
            shape = call.by(rule(SHAPES, call, value.place))
            if shape is None:
                shape = self._inferred(call, value.place).shape
            if shape is None and (rank := rank_of_output(call, value.place)) is not None:
                shape = (None,) * rank
        stated = value.stated.sizes if shape is None or None in shape else None
        if stated is None:
            return shape
        sizes = tuple(self.atoms(size) if isinstance(size, str) else size for size in stated)
        if shape is None or len(sizes) != len(shape):
            return sizes if shape is None else shape
        data = call.asked("shape", 0) if call is not None and call.by(keeps_axes) else None
        if data is not None and len(data) == len(shape):  # a number stated for what follows from no number is stale
            pairs = zip(sizes, data, strict=True)
            sizes = tuple(None if isinstance(size, int) and not isinstance(own, int) else size for size, own in pairs)
        return tuple(other if size is None else size for size, other in zip(shape, sizes, strict=True))

    def _contents(self, value: Value) -> Array | None:
        """The contents of a small tensor of integers or bools, in which sizes may be symbolic."""
        if value.stated.element_type not in (0, *COUNTING):
            return None
        call = value.call
        contents: Array | None = across("contents", value, self.ask) if value.is_at_border else None
        if contents is None and call is not None and not call.domain:
            contents = self._computed("contents", call)
        is_small = contents is not None and contents.size <= LONGEST and contents.dtype.kind in "biO"
        return contents if is_small else None

    def _constant(self, value: Value) -> Array | None:
        """A value computed from constants and known sizes."""
        call = value.call
        if call is None or call.domain:
            return None
        constant = None if call.op_type in _OF_SIZES else self._computed("constant", call)
        return self._numbers(value) if constant is None else constant

    def _numbers(self, value: Value) -> Array | None:
        """The contents of a small tensor, if all of them are numbers."""
        contents = self.about(value, "contents")
        if contents is None or is_symbolic(contents):
            return None  # without asking for its element type
        element_type = self.about(value, "element_type")
        return contents.astype(helper.tensor_dtype_to_np_dtype(element_type)) if element_type in COUNTING else None

    def _computed(self, question: Question, call: Call) -> Array | None:
        """The contents of the output of a node by those of its inputs."""
        if call.op_type in _OF_SIZES:
            return call.by(_sizes)
        if not has_rule(call.op_type):
            return None
        inputs: list[Array | None] = []
        for at, operand in enumerate(call.inputs):
            contents: Array | None = None
            if call.op_type == "CastLike" and at == 1:  # only its type matters
                element_type = call.asked("element_type", at)
                contents = np.zeros(1, helper.tensor_dtype_to_np_dtype(element_type)) if element_type else None
            else:
                contents = call.asked(question, at)
            if operand and contents is None and call.op_type == "Concat" and question == "contents":
                shape = call.asked("shape", at)
                is_small = shape is not None and len(shape) == 1 and isinstance(shape[0], int) and shape[0] <= LONGEST
                contents = tensor([None] * shape[0], shape) if is_small else None
            if operand and contents is None:
                return None
            inputs.append(contents)
        return evaluated(call.node, inputs)

    def _inferred(self, call: Call, place: int) -> Facts:
        """The facts about an output that onnx's inference of its node returns."""
        version = call.graph.version(call.domain)
        if version is None or not can_infer(call.node, call.domain, version):
            return NOTHING
        given = [self._facts(call.graph, name) if name else None for name in call.inputs]
        if call.given != given:
            call.given, call.inferred = given, self._inference.infer(call.node, call.domain, version, given)
        return call.inferred[place]

    def _facts(self, graph: Graph, name: str) -> Facts:
        """The facts about an input for onnx's inference."""
        element_type = self.ask(graph, "element_type", name)
        if element_type is None and (container := self.ask(graph, "container", name)):
            return Facts(0, None, container)
        shape, value = self.ask(graph, "shape", name), self._values[graph.place, name]
        numbers = None
        if isinstance(value.held, Constant):
            numbers = value.held.small_value
        elif element_type in COUNTING and shape is not None and len(shape) < 2:
            numbers = self._numbers(value)
        return Facts(element_type or 0, shape, b"", b"" if numbers is None else from_array(numbers).SerializeToString())


_RULES: Mapping[Question, Callable[[Resolver, Value], Any]] = {
    "element_type": Resolver._element_type,
    "container": Resolver._container,
    "rank": Resolver._rank,
    "shape": Resolver._shape,
    "contents": Resolver._contents,
    "constant": Resolver._constant,
}


def _sizes(call: Call) -> Array:
    """The contents that Shape or Size yields."""
    shape: Sequence[Any] = call.shape(0)
    if call.op_type == "Size":
        return tensor([prod(shape)], ())
    part = shape[call.attribute("start", 0) : call.attribute("end")]
    return tensor(part, (len(part),))
