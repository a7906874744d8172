"""Answers each question about a value from the node that computes it and from the types that its graph states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import helper
from onnx.numpy_helper import from_array

from reducelower.arguments import LARGEST_RANK
from reducelower.model.value_info import StatedType
from reducelower.types.arithmetic import is_symbolic
from reducelower.types.borders import Source, in_common, is_followed, source_outside, sources_inside
from reducelower.types.call import Call
from reducelower.types.contents import evaluated, has_rule, tensor
from reducelower.types.element_types import element_type_by_readers, element_type_of_output
from reducelower.types.graphs import Constant, Graph
from reducelower.types.known import COUNTING, LONGEST, Question, Shape
from reducelower.types.node_inference import NOTHING, Facts, NodeInference, can_infer
from reducelower.types.ranks import rank_rule
from reducelower.types.shapes import shape_rule
from reducelower.types.sizes import Atoms

if TYPE_CHECKING:
    from reducelower.model.numbers import Array

__all__ = ["Answers", "Value"]

_OF_SIZES = ("Shape", "Size")
"""Operators that read sizes only."""


class Value:
    """A value with the answers about it.

    Attributes:
        home: the graph that defines it.
        name: its name there.
        held: an object with the facts that need no node (see `Graph.held`); None if there is none.
        made: the node that computes it; None if no node does.
        place: its position among the outputs of that node.
        answers: the answers so far, by question.
    """

    __slots__ = ("_stated", "answers", "held", "home", "made", "name", "place")

    def __init__(self, home: Graph, name: str, held: object | None, made: Call | None = None, place: int = 0) -> None:
        self._stated: StatedType | None = None
        self.home = home
        self.name = name
        self.held = held
        self.made = made
        self.place = place
        self.answers: dict[Question, Any] = held.answers if isinstance(held, Constant) else {}

    @property
    def stated(self) -> StatedType:
        """The type that its graph states for it."""
        if self._stated is None:
            self._stated = self.home.stated_type(self.name)
        return self._stated


class Answers:
    """Answers each question about a value separately, from answers about other values.

    Attributes:
        ask: answers a question about a value of a graph or of an enclosing one.
        value: returns such a value.
        answer: answers a question about a value.
        atoms: numbers new atoms.
    """

    ask: Callable[[Graph, Question, str], Any]
    value: Callable[[Graph, str], Value]
    answer: Callable[[Question, Value], Any]
    atoms: Atoms

    @cached_property
    def _inference(self) -> NodeInference:
        return NodeInference()

    def work_out(self, question: Question, value: Value) -> Any:
        """The answer to a question about a value."""
        answer = getattr(self, f"_{question}")(value) if value.held is None else getattr(value.held, question)
        if answer is None or question != "shape":
            return answer
        place = value.home.place, value.name  # each unknown size becomes an atom
        return tuple([self.atoms((*place, axis)) if size is None else size for axis, size in enumerate(answer)])

    def _followed(self, question: Question, value: Value) -> Any:
        """The answer for a value that enters a graph from outside, or leaves one; of no other value is one known."""
        made = value.made
        if made is not None:
            return None if made.inside == () else in_common(question, self._inside(made, value), self.ask)
        source = source_outside(value.home, value.name)
        return None if source is None else in_common(question, [source], self.ask)

    def _element_type(self, value: Value) -> int | None:
        stated, made = value.stated, value.made
        if stated.element_type or stated.container:
            return stated.element_type or None
        element_type: int | None = self._followed("element_type", value)
        if made is not None and not element_type:
            element_type = element_type_of_output(made, value.place) or self._inferred(made, value.place).element_type
        return element_type or element_type_by_readers(value.home, value.name, partial(self.ask, value.home)) or None

    def _container(self, value: Value) -> bytes | None:
        container: bytes | None = value.stated.container or self._followed("container", value)
        if not container and value.made is not None:
            container = self._inferred(value.made, value.place).container
        return container or None

    def _rank(self, value: Value) -> int | None:
        if "shape" not in value.answers:
            rank: int | None = self._followed("rank", value)
            if rank is None and value.made is not None:
                rank = self._rank_of_output(value.made, value.place)
            if rank is not None:
                return rank
        shape = self.answer("shape", value)
        return None if shape is None else len(shape)

    def _rank_of_output(self, made: Call, place: int) -> int | None:
        """The rank of an output by the tables of ranks."""
        rank = made.by(rank_rule(made, place))
        return rank if rank is not None and 0 <= rank <= LARGEST_RANK else None

    def _shape(self, value: Value) -> Shape | None:
        """The shape, with None for unknown sizes."""
        stated, made, place = value.stated.sizes, value.made, value.place
        shape: Shape | None = self._followed("shape", value)
        if shape is None and made is not None:
            shape = made.by(shape_rule(made, place))
            if shape is None:
                shape = self._inferred(made, place).shape
            if shape is None and (rank := self._rank_of_output(made, place)) is not None:
                shape = (None,) * rank
        if stated is None or (shape is not None and None not in shape):
            return shape
        sizes = tuple(self.atoms(size) if isinstance(size, str) else size for size in stated)
        if shape is None or len(sizes) != len(shape):
            return sizes if shape is None else shape
        return tuple(other if size is None else size for size, other in zip(shape, sizes, strict=True))

    def _contents(self, value: Value) -> Array | None:
        """The contents of a small tensor of integers or bools, in which sizes may be symbolic."""
        if value.stated.element_type not in (0, *COUNTING):
            return None
        contents: Array | None = self._followed("contents", value)
        if contents is None and value.made is not None and not value.made.domain:
            contents = self._computed("contents", value.made, value)
        is_small = contents is not None and contents.size <= LONGEST and contents.dtype.kind in "biO"
        return contents if is_small else None

    def _constant(self, value: Value) -> Array | None:
        """The value of a constant of the graph, or one computed from constants and known sizes."""
        constant, made = value.home.value(value.name), value.made
        if constant is not None or made is None or made.domain:
            return constant
        constant = None if made.op_type in _OF_SIZES else self._computed("constant", made, value)
        return self._numbers(value) if constant is None else constant

    def _numbers(self, value: Value) -> Array | None:
        """The contents of a small tensor, if all of them are numbers."""
        contents = self.answer("contents", value)
        if contents is None or is_symbolic(contents):
            return None  # without asking for its element type
        element_type = self.answer("element_type", value)
        return contents.astype(helper.tensor_dtype_to_np_dtype(element_type)) if element_type in COUNTING else None

    def _computed(self, question: Question, made: Call, value: Value) -> Array | None:
        """The contents by those of the inputs of the node."""
        if made.op_type in _OF_SIZES:
            return made.by(_sizes)
        inputs: list[Array | None] = []
        for at, operand in enumerate(made.inputs if has_rule(made.op_type) else ()):
            contents: Array | None = None
            if made.op_type == "CastLike" and at == 1:  # only its type matters
                element_type = made.asked("element_type", at)
                contents = np.zeros(1, helper.tensor_dtype_to_np_dtype(element_type)) if element_type else None
            else:
                contents = made.asked(question, at)
            if operand and contents is None and made.op_type == "Concat" and question == "contents":
                shape = made.asked("shape", at)
                is_small = shape is not None and len(shape) == 1 and isinstance(shape[0], int) and shape[0] <= LONGEST
                contents = tensor([None] * shape[0], shape) if is_small else None
            if operand and contents is None:
                return None
            inputs.append(contents)
        return evaluated(made.node, inputs, value.place)

    # From the inputs of a node to its outputs

    def _inside(self, made: Call, value: Value) -> Sequence[Source]:
        """The inner values that become an output of an If, a Loop or a Scan."""
        if made.inside is None:
            made.inside = value.home.inside(made.node) if is_followed(made.node, value.home) else ()
        taken = made.asked("contents", 0) if made.inside and made.op_type == "If" else None
        is_known = taken is not None and taken.size == 1 and not is_symbolic(taken)
        return sources_inside(made, value.place, bool(taken) if is_known else None) if made.inside else ()

    def _inferred(self, made: Call, place: int) -> Facts:
        """The facts about an output that onnx's inference of its node returns."""
        version = made.graph.version(made.domain)
        if version is None or not can_infer(made.node, made.domain, version):
            return NOTHING
        given = [self._facts(self.value(made.graph, name)) if name else None for name in made.inputs]
        if made.given != given:
            made.given, made.inferred = given, self._inference.infer(made.node, made.domain, version, given)
        return made.inferred[place]

    def _facts(self, value: Value) -> Facts:
        """The facts about an input for onnx's inference."""
        element_type = self.answer("element_type", value)
        if element_type is None and (container := self.answer("container", value)):
            return Facts(0, None, container)
        shape = self.answer("shape", value)
        numbers = None
        if isinstance(value.held, Constant):
            numbers = value.held.small_value
        elif element_type in COUNTING and shape is not None and len(shape) < 2:
            numbers = self._numbers(value)
        return Facts(element_type or 0, shape, b"", b"" if numbers is None else from_array(numbers).SerializeToString())


def _sizes(call: Call) -> Array:
    """The contents that Shape or Size yields."""
    shape = call.shape(0)
    if call.op_type == "Size":
        return tensor([prod(shape)], ())
    part = shape[call.attribute("start", 0) : call.attribute("end")]
    return tensor(part, (len(part),))
