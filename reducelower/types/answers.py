"""Answers each question about a value from the node that computes it and from the types that its graph states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from onnx import NodeProto, helper, numpy_helper

from reducelower.arguments import LARGEST_RANK
from reducelower.errors import RefusedError
from reducelower.model.schemas import plain_domain
from reducelower.model.value_info import StatedType
from reducelower.types.borders import HOLDERS, Source, in_common, is_followed, source_outside, sources_inside
from reducelower.types.call import Call, UnknownError
from reducelower.types.element_types import element_type_by_readers, output_element_type
from reducelower.types.elements import ELEMENTS
from reducelower.types.fold import SELECTING, evaluated, is_computable
from reducelower.types.graphs import Graph, Held
from reducelower.types.known import COUNTING, LONGEST, UNKNOWN, Constant, Elements, Known, Question, Shape
from reducelower.types.node_inference import NOTHING, Facts, NodeInference, can_infer
from reducelower.types.ranks import listed, rank_rule
from reducelower.types.shapes import ALIKE, SHAPES
from reducelower.types.sizes import Atoms

if TYPE_CHECKING:
    from reducelower.model.numbers import Array

__all__ = ["Answers", "NodeRecord", "ValueRecord"]

_Fact = TypeVar("_Fact")


class NodeRecord:
    """A node with the facts that all of its outputs share. There may be thousands of outputs.

    Attributes:
        node: the node.
        domain: its domain; empty for either spelling of the default one.
        inside: its subgraphs, if `is_followed` holds; None until a question needs it.
        inputs: the facts about its inputs in the last run of onnx's inference.
        inferred: the facts about its outputs that this run returned.
    """

    __slots__ = ("domain", "inferred", "inputs", "inside", "node")

    def __init__(self, node: NodeProto) -> None:
        self.node = node
        self.domain = plain_domain(node.domain)
        self.inside: Sequence[Graph] | None = () if self.domain or node.op_type not in HOLDERS else None
        self.inputs: Sequence[Facts | None] | None = None
        self.inferred: Sequence[Facts] = ()


class ValueRecord:
    """The answers about a value.

    Attributes:
        home: the graph that defines it.
        name: its name there.
        held: what the graph knows about it without any node; None if nothing.
        made: the node that computes it; None if no node does.
        place: its position among the outputs of that node.
        answers: the answers so far, by question.
    """

    __slots__ = ("_stated", "answers", "held", "home", "made", "name", "place")

    def __init__(
        self, home: Graph, name: str, held: Held | Constant | None, made: NodeRecord | None = None, place: int = 0
    ) -> None:
        self._stated: StatedType | None = None
        self.home = home
        self.name = name
        self.held = held
        self.made = made
        self.place = place
        self.answers: dict[Question, Any] = held.type if isinstance(held, Constant) else {}

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
        answer: answers a question about a value.
        atoms: numbers new atoms.
    """

    ask: Callable[[Graph, Question, str], Any]
    answer: Callable[[Question, ValueRecord], Any]

    def __init__(self, atoms: Atoms) -> None:
        self.atoms = atoms
        self._inference = NodeInference()

    def work_out(self, question: Question, value: ValueRecord) -> Any:
        """The answer to a question about a value."""
        held = value.held
        if held is None or question == "constant":
            answer = getattr(self, f"_{question}")(value)
        else:
            if isinstance(held, Constant):
                held = value.held = _with_value(value, held)
            answer = held.answer(question)
        if answer is None or question != "shape":
            return answer
        place = value.home.place, value.name  # each unknown size becomes an atom
        return tuple([self.atoms((*place, axis)) if size is None else size for axis, size in enumerate(answer)])

    def _followed(self, question: Question, value: ValueRecord) -> Any:
        """The answer for a value that enters a graph from outside, or leaves one; of no other value is one known."""
        made = value.made
        if made is None:
            source = source_outside(value.home, value.name)
            return UNKNOWN[question] if source is None else in_common(question, [source], self.ask)
        return UNKNOWN[question] if made.inside == () else in_common(question, self._inside(made, value), self.ask)

    def _element_type(self, value: ValueRecord) -> int:
        stated, made = value.stated, value.made
        if stated.element_type or stated.container:
            return stated.element_type
        element_type: int = self._followed("element_type", value)
        if made is not None and not element_type:
            element_type = self._type_of_output(made, value) or self._inferred(made, value).element_type
        of_other = partial(self.ask, value.home, "element_type")
        return element_type or element_type_by_readers(value.home, value.name, of_other)

    def _type_of_output(self, made: NodeRecord, value: ValueRecord) -> int:
        """The element type by the schema of the operator, or by the tables of operators that have none."""
        node, home = made.node, value.home
        version = home.version(made.domain)
        if version is None:
            return 0
        answer = output_element_type(node, value.place, version)
        if not answer and (output := listed(node.op_type, made.domain, value.place, home.opset)) is not None:
            answer = list(filter(None, node.input[output.like : output.like + 1])) or output.element_type
        return answer if isinstance(answer, int) else self._shared_type(answer, home)

    def _shared_type(self, names: Sequence[str], home: Graph) -> int:
        """The element type that values share; if one is a constant, nothing need be resolved for the others."""
        for name in names:
            constant = home.home(name).held(name)
            if isinstance(constant, Constant):
                return constant.element_type
        return next(filter(None, (self.ask(home, "element_type", name) for name in names)), 0)

    def _container(self, value: ValueRecord) -> bytes:
        """The type of a sequence or of an optional value, serialized; empty for a tensor."""
        container: bytes = value.stated.container or self._followed("container", value)
        return container if container or value.made is None else self._inferred(value.made, value).container

    def _rank(self, value: ValueRecord) -> int | None:
        if "shape" not in value.answers:
            rank: int | None = self._followed("rank", value)
            if rank is None and value.made is not None:
                rank = self._rank_of_output(value.made, value)
            if rank is not None:
                return rank
        shape = self.answer("shape", value)
        return None if shape is None else len(shape)

    def _rank_of_output(self, made: NodeRecord, value: ValueRecord) -> int | None:
        """The rank of an output by the tables of ranks."""
        home = value.home
        is_imported = not made.domain or home.version(made.domain) is not None
        rule = rank_rule(made.node.op_type, made.domain, value.place, home.opset) if is_imported else None
        rank = self._by_rule(rule, made, home)
        return rank if rank is not None and 0 <= rank <= LARGEST_RANK else None

    def _shape(self, value: ValueRecord) -> Shape | None:
        """The shape, with None for unknown sizes."""
        stated = value.stated.sizes
        shape: Shape | None = self._followed("shape", value)
        if shape is None and value.made is not None:
            shape = self._shape_of_output(value.made, value)
        if stated is None or (shape is not None and None not in shape):
            return shape
        sizes = tuple(self.atoms(size) if isinstance(size, str) else size for size in stated)
        if shape is None or len(sizes) != len(shape):
            return sizes if shape is None else shape
        return tuple(other if size is None else size for size, other in zip(shape, sizes, strict=True))

    def _shape_of_output(self, made: NodeRecord, value: ValueRecord) -> Shape | None:
        operator = made.node.op_type
        has_rule = not made.domain and (value.place == 0 or operator in ALIKE)
        shape = self._by_rule(SHAPES.get(operator), made, value.home) if has_rule else None
        if shape is None:
            shape = self._inferred(made, value).shape
        if shape is None and (rank := self._rank_of_output(made, value)) is not None:
            shape = (None,) * rank
        return shape

    def _elements(self, value: ValueRecord) -> Elements | None:
        if value.stated.element_type not in (0, *COUNTING):
            return None
        elements: Elements | None = self._followed("elements", value)
        made = value.made
        if elements is None and made is not None and value.place == 0 and not made.domain:
            elements = self._by_rule(ELEMENTS.get(made.node.op_type), made, value.home)
        return elements

    def _data(self, value: ValueRecord) -> bytes:
        """A vector of numbers, serialized; empty for any other value."""
        element_type, rank = self.answer("element_type", value), self.answer("rank", value)
        may_count = element_type in COUNTING and rank is not None and rank < 2
        counted = self._sizes_as_constant(value) if may_count else None
        return b"" if counted is None else numpy_helper.from_array(counted).SerializeToString()

    def _constant(self, value: ValueRecord) -> Array | None:
        """The value of a constant of the graph, or one computed from constants and known sizes."""
        home, made = value.home, value.made
        constant = home.value(value.name)
        if constant is not None or made is None or made.domain:
            return constant
        node = made.node
        if node.op_type in ("Shape", "Size"):
            return self._sizes_as_constant(value)
        inputs: list[Array | None] = []
        for at, operand in enumerate(node.input if is_computable(node) else ()):
            if operand and node.op_type == "CastLike" and at == 1:  # only its type matters
                element_type = self.ask(home, "element_type", operand)
                constant = np.zeros(1, helper.tensor_dtype_to_np_dtype(element_type)) if element_type else None
            else:
                constant = self.ask(home, "constant", operand) if operand else None
            if operand and constant is None:
                return self._sizes_as_constant(value) if node.op_type in SELECTING else None
            inputs.append(constant)
        return evaluated(node, inputs, home.opset, value.place) if is_computable(node) else None

    def _sizes_as_constant(self, value: ValueRecord) -> Array | None:
        """The value of a small vector of sizes, if all of them are known numbers."""
        elements = self.answer("elements", value)
        if Known(elements=elements).numbers is None:
            return None  # without asking for its shape and element type
        return Known(self.answer("element_type", value), self.answer("shape", value), elements).counted

    # From the inputs of a node to its outputs

    def _inside(self, made: NodeRecord, value: ValueRecord) -> Sequence[Source]:
        """The inner values that become an output of an If, a Loop or a Scan."""
        node, home = made.node, value.home
        if made.inside is None:
            made.inside = home.inside(node) if is_followed(node, home) else ()
        if not made.inside:
            return ()
        numbers = None
        if node.op_type == "If" and node.input:
            numbers = Known(elements=self.ask(home, "elements", node.input[0])).numbers
        return sources_inside(node, value.place, home, made.inside, bool(numbers[0]) if numbers else None)

    def _by_rule(self, rule: Callable[[Call], _Fact] | None, made: NodeRecord, home: Graph) -> _Fact | None:
        """The result of a rule; None if something it needs is unknown. In a broken model anything may be."""
        try:
            # New for each rule: a kept one would hold the resolver and its weights until garbage collection.
            return None if rule is None else rule(Call(made.node, partial(self.ask, home), self.atoms))
        except (UnknownError, RefusedError, IndexError, TypeError, ValueError):
            return None

    def _inferred(self, made: NodeRecord, value: ValueRecord) -> Facts:
        """The facts about a value that onnx's inference of its node returns."""
        home = value.home
        version = home.version(made.domain)
        if version is None or not can_infer(made.node, made.domain, version):
            return NOTHING
        inputs = [self._facts(home, operand) if operand else None for operand in made.node.input]
        if made.inputs != inputs:
            made.inputs, made.inferred = inputs, self._inference.infer(made.node, made.domain, version, inputs)
        return made.inferred[value.place]

    def _facts(self, graph: Graph, name: str) -> Facts:
        """The facts about an input for onnx's inference."""
        element_type = self.ask(graph, "element_type", name)
        if not element_type and (container := self.ask(graph, "container", name)):
            return Facts(0, None, container)
        return Facts(element_type, self.ask(graph, "shape", name), b"", self.ask(graph, "data", name))


def _with_value(value: ValueRecord, constant: Constant) -> Known:
    """The facts about a constant, with its value if that is small."""
    array = None
    if prod(constant.shape) <= LONGEST:
        with suppress(RefusedError):  # a node that needs the value is refused
            array = value.home.value(value.name)
    return Known.of_constant(constant.element_type, constant.shape, array)
