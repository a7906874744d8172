"""Answers each question about a value from the node that computes it and from the types that its graph states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from onnx import NodeProto, helper, numpy_helper

from reducelower.arguments import LARGEST_RANK
from reducelower.errors import RefusedError
from reducelower.model.schemas import plain_domain
from reducelower.model.value_info import StatedType
from reducelower.types.borders import HOLDERS, Source, in_common, is_followed, sources_inside, sources_outside
from reducelower.types.call import Call, UnknownError
from reducelower.types.element_types import element_type_by_readers, output_element_type
from reducelower.types.elements import ELEMENTS
from reducelower.types.fold import SELECTING, evaluated, is_computable
from reducelower.types.graphs import Graph, Held
from reducelower.types.known import COUNTING, UNKNOWN, Constant, Elements, Known, Question, Shape
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
        inside: its subgraphs or the function it calls, if `is_followed` holds; None until a question needs it.
        inputs: the facts about its inputs in the last run of onnx's inference.
        inferred: the facts about its outputs that this run returned.
    """

    __slots__ = ("domain", "inferred", "inputs", "inside", "node")

    def __init__(self, node: NodeProto) -> None:
        self.node = node
        self.domain = plain_domain(node.domain)
        holds_none = not self.domain and node.op_type not in HOLDERS
        self.inside: Sequence[tuple[Graph, Sequence[str]]] | None = () if holds_none else None
        self.inputs: Sequence[Facts | None] | None = None
        self.inferred: Sequence[Facts] = ()


class ValueRecord:
    """The answers about a value. It does not refer to the graph, which would keep the weights until garbage collection.

    Attributes:
        held: what the graph knows about it without any node; None if nothing.
        made: the node that computes it; None if no node does.
        place: its position among the outputs of that node.
        answers: the answers so far, by question.
    """

    __slots__ = ("_stated", "answers", "held", "made", "place")

    def __init__(self, held: Held | None = None, made: NodeRecord | None = None, place: int = 0) -> None:
        self._stated: StatedType | None = None
        self.held = held
        self.made = made
        self.place = place
        self.answers: dict[Question, Any] = held.type if isinstance(held, Constant) else {}

    def stated(self, home: Graph, name: str) -> StatedType:
        """The type that its graph states for it, under its name there."""
        if self._stated is None:
            self._stated = home.stated_type(name)
        return self._stated


class Answers:
    """Answers each question about a value separately, from answers about other values.

    Attributes:
        ask: answers a question about a value of a graph or of an enclosing one.
        atoms: numbers new atoms.
    """

    ask: Callable[[Graph, Question, str], Any]

    def __init__(self, atoms: Atoms) -> None:
        self.atoms = atoms
        self._inference = NodeInference()

    def work_out(self, question: Question, home: Graph, name: str, value: ValueRecord) -> Any:
        """The answer to a question about a value of a graph."""
        if value.held is None or question == "constant":
            answer = getattr(self, f"_{question}")(home, name, value)
        else:
            answer = value.held.answer(question, partial(_if_readable, home, name))
        if answer is None or question != "shape":
            return answer
        place = home.place  # each unknown size becomes an atom
        return tuple([self.atoms((place, name, axis)) if size is None else size for axis, size in enumerate(answer)])

    def _followed(self, question: Question, home: Graph, name: str, value: ValueRecord) -> Any:
        """The answer for a value that enters a graph from outside, or leaves one; of no other value is one known."""
        if value.made is not None and value.made.inside == ():
            return UNKNOWN[question]
        sources = sources_outside(home, name) if value.made is None else self._sources_inside(value, home)
        return in_common(question, sources, self.ask)

    def _element_type(self, home: Graph, name: str, value: ValueRecord) -> int:
        stated = value.stated(home, name)
        if stated.element_type or stated.container:
            return stated.element_type
        element_type: int = self._followed("element_type", home, name, value)
        if value.made is not None and not element_type:
            element_type = self._type_of_output(value, home) or self._inferred(value, home).element_type
        return element_type or element_type_by_readers(home, name, partial(self.ask, home, "element_type"))

    def _type_of_output(self, value: ValueRecord, home: Graph) -> int:
        """The element type by the schema of the operator, or by the tables of operators that have none."""
        assert value.made is not None
        node, version = value.made.node, home.version(value.made.domain)
        if version is None:
            return 0
        answer = output_element_type(node, value.place, version)
        if not answer and (output := listed(node.op_type, value.made.domain, value.place, home.opset)) is not None:
            answer = list(filter(None, node.input[output.like : output.like + 1])) or output.element_type
        return answer if isinstance(answer, int) else self._shared_type(answer, home)

    def _shared_type(self, names: Sequence[str], home: Graph) -> int:
        """The element type that values share; if one is a constant, nothing need be resolved for the others."""
        for name in names:
            constant = home.home(name).held(name)
            if isinstance(constant, Constant):
                return constant.element_type
        return next(filter(None, (self.ask(home, "element_type", name) for name in names)), 0)

    def _container(self, home: Graph, name: str, value: ValueRecord) -> bytes:
        """The type of a sequence or of an optional value, serialized; empty for a tensor."""
        container: bytes = value.stated(home, name).container or self._followed("container", home, name, value)
        return container if container or value.made is None else self._inferred(value, home).container

    def _rank(self, home: Graph, name: str, value: ValueRecord) -> int | None:
        rank, shape = None, value.answers.get("shape")
        if shape is None:
            rank = self._followed("rank", home, name, value)
            if rank is None and value.made is not None:
                rank = self._rank_of_output(value, home)
            if rank is None:
                shape = self.ask(home, "shape", name)
        return rank if shape is None else len(shape)

    def _rank_of_output(self, value: ValueRecord, home: Graph) -> int | None:
        """The rank of an output by the tables of ranks."""
        made = value.made
        assert made is not None
        version = home.version(made.domain)
        rule = None if version is None else rank_rule(made.node.op_type, made.domain, value.place, home.opset)
        rank = self._by_rule(rule, made, home)
        return rank if rank is not None and 0 <= rank <= LARGEST_RANK else None

    def _shape(self, home: Graph, name: str, value: ValueRecord) -> Shape | None:
        """The shape, with None for unknown sizes."""
        stated = value.stated(home, name).sizes
        shape: Shape | None = self._followed("shape", home, name, value)
        if shape is None and value.made is not None:
            shape = self._shape_of_output(value, home)
        if stated is None:
            return shape
        if shape is not None and None not in shape:
            return shape
        sizes = tuple(self.atoms(size) if isinstance(size, str) else size for size in stated)
        if shape is None or len(sizes) != len(shape):
            return sizes if shape is None else shape
        return tuple(other if size is None else size for size, other in zip(shape, sizes, strict=True))

    def _elements(self, home: Graph, name: str, value: ValueRecord) -> Elements | None:
        if value.stated(home, name).element_type not in (0, *COUNTING):
            return None
        elements: Elements | None = self._followed("elements", home, name, value)
        made = value.made
        if elements is None and made is not None and value.place == 0 and not made.domain:
            elements = self._by_rule(ELEMENTS.get(made.node.op_type), made, home)
        return elements

    def _data(self, home: Graph, name: str, value: ValueRecord) -> bytes:
        """A vector of numbers, serialized; empty for any other value."""
        element_type, rank = self.ask(home, "element_type", name), self.ask(home, "rank", name)
        may_count = element_type in COUNTING and rank is not None and rank < 2
        counted = self._sizes_as_constant(home, name) if may_count else None
        return b"" if counted is None else numpy_helper.from_array(counted).SerializeToString()

    def _constant(self, home: Graph, name: str, value: ValueRecord) -> Array | None:
        """The value of a constant of the graph, or one computed from constants and known sizes."""
        constant, made = home.value(name), value.made
        if constant is not None or made is None or made.domain:
            return constant
        node = made.node
        if node.op_type in ("Shape", "Size"):
            return self._sizes_as_constant(home, name)
        inputs: list[Array | None] = []
        for at, operand in enumerate(node.input if is_computable(node) else ()):
            if operand and node.op_type == "CastLike" and at == 1:  # only its type matters
                element_type = self.ask(home, "element_type", operand)
                constant = np.zeros(1, helper.tensor_dtype_to_np_dtype(element_type)) if element_type else None
            else:
                constant = self.ask(home, "constant", operand) if operand else None
            if operand and constant is None:
                return self._sizes_as_constant(home, name) if node.op_type in SELECTING else None
            inputs.append(constant)
        return evaluated(node, inputs, home.opset, value.place) if is_computable(node) else None

    def _sizes_as_constant(self, home: Graph, name: str) -> Array | None:
        """The value of a small vector of sizes, if all of them are known numbers."""
        elements = self.ask(home, "elements", name)
        if Known(elements=elements).numbers is None:
            return None  # without asking for its shape and element type
        return Known(self.ask(home, "element_type", name), self.ask(home, "shape", name), elements).counted

    # From the inputs of a node to its outputs

    def _sources_inside(self, value: ValueRecord, home: Graph) -> Sequence[Source]:
        """The inner values that become an output of an If, a Loop, a Scan or a call of a function."""
        made = value.made
        assert made is not None
        node = made.node
        if made.inside is None:
            made.inside = home.inside(node) if is_followed(node, home) else ()
        if not made.inside:
            return ()
        numbers = None
        if not made.domain and node.op_type == "If" and node.input:
            numbers = Known(elements=self.ask(home, "elements", node.input[0])).numbers
        return sources_inside(node, value.place, home, made.inside, bool(numbers[0]) if numbers else None)

    def _by_rule(self, rule: Callable[[Call], _Fact] | None, made: NodeRecord, home: Graph) -> _Fact | None:
        """The result of a rule; None if something it needs is unknown. In a broken model anything may be."""
        try:
            # New for each rule: a kept one would hold the graph and its weights until garbage collection.
            return None if rule is None else rule(Call(made.node, partial(self.ask, home), self.atoms))
        except (UnknownError, RefusedError, IndexError, TypeError, ValueError):
            return None

    def _shape_of_output(self, value: ValueRecord, home: Graph) -> Shape | None:
        made = value.made
        assert made is not None
        operator = made.node.op_type
        has_rule = not made.domain and (value.place == 0 or operator in ALIKE)
        shape = self._by_rule(SHAPES.get(operator), made, home) if has_rule else None
        if shape is None:
            shape = self._inferred(value, home).shape
        if shape is None:
            rank = self._rank_of_output(value, home)
            shape = None if rank is None else (None,) * rank
        return shape

    def _inferred(self, value: ValueRecord, home: Graph) -> Facts:
        """The facts about a value that onnx's inference of its node returns."""
        made = value.made
        assert made is not None
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


def _if_readable(graph: Graph, name: str) -> Array | None:
    try:
        return graph.value(name)
    except RefusedError:  # a node that needs the value is refused
        return None
