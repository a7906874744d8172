"""Works out what is known about a value from the nodes that compute it, when it is asked and once per run.

A node's outputs follow from what is known about its inputs: by the rules of `operators`, else by onnx's own inference
of that one node. What a graph states is used where nodes leave something open: exporters leave stale types in
value_info.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from onnx import NodeProto, OperatorSetIdProto, TensorProto, TypeProto, shape_inference

from reducelower.errors import RefusedError
from reducelower.model.element_types import output_element_type
from reducelower.model.inference import ContradictionError
from reducelower.model.inference.protected import may_crash
from reducelower.model.inference.ranks import RANKS, Inputs, evaluate_rule
from reducelower.model.schemas import DEFAULT_DOMAINS, schema
from reducelower.model.value_info import may_be_of_one_shape, size_of
from reducelower.types.known import Elements, Known, Shape
from reducelower.types.operators import ELEMENTS, SHAPES, Call, UnknownError
from reducelower.types.sizes import Size, of_text

__all__ = ["Atoms", "Graph", "Resolver"]


class Graph(Protocol):
    """A graph as the resolver sees it. Names resolve as in ONNX: inner graphs see the values of those around them."""

    opset: int

    def home(self, name: str) -> Graph:
        """The graph that defines a value: this one or an enclosing one."""

    def producer(self, name: str) -> NodeProto | None:
        """The node of this graph that computes a value."""

    def held(self, name: str) -> Known | None:
        """What is known about a constant of this graph, or a value from outside; None for any other value."""

    def stated_type(self, name: str) -> TypeProto | None:
        """The type that this graph states for a value; None if it states none that may be used."""

    def note_trusted(self, name: str) -> None:
        """Note that what this graph states for a value was used."""

    def inside(self, node: NodeProto) -> Sequence[tuple[Graph, Sequence[str]]]:
        """The subgraphs of a node of this graph, each with the names of its outputs."""


_Value: TypeAlias = "tuple[Graph, str]"
"""A value: its name, and the graph that defines it."""

_Output: TypeAlias = "tuple[int, Shape | None, Elements | None]"
"""Element type, shape and contents of an output, with None for what is unknown."""

_NOTHING = Known()
_NONE: _Output = (0, None, None)


@dataclass
class Atoms:
    """Numbers atoms: equal keys share one.

    Attributes:
        first: the first number.
    """

    first: int = 0
    _numbers: dict[Hashable, int] = field(default_factory=dict)
    _names: dict[int, str] = field(default_factory=dict)

    def __call__(self, key: Hashable) -> Size:
        """The size that is this atom."""
        number = self._numbers.setdefault(key, self.first + len(self._numbers))
        if isinstance(key, str):
            self._names[number] = key
        return Size.atom(number)

    def name(self, size: Size) -> str:
        """The name that the model has for a size; empty if it has none."""
        (monomial, coefficient), *others = size.terms or [((), 0)]
        return self._names.get(monomial[0], "") if len(monomial) == coefficient == 1 and not others else ""


class Resolver:
    """What is known about the values of one model."""

    def __init__(self, atoms: Atoms | None = None, *, objects: bool = False) -> None:
        """Start with nothing.

        Args:
            atoms: numbers new atoms.
            objects: whether to raise if a graph states another type than nodes yield.
        """
        self._objects = objects
        self.atoms = atoms or Atoms()
        self._known: dict[_Value, Known] = {}
        self._outputs: dict[Hashable, list[_Output]] = {}
        self._inside: dict[_Value, Sequence[tuple[Graph, Sequence[str]]]] = {}
        self._spelled: dict[Size, str] = {}
        self._sizes: dict[str, Size] = {}

    def known(self, name: str, graph: Graph) -> Known:
        """What is known about a value.

        Raises:
            ContradictionError: a graph states another type of it, or of what it is computed from, than nodes yield.
        """
        wanted = graph.home(name), name
        # An explicit stack, since the graph may be deeper than Python's recursion limit.
        waiting = [] if wanted in self._known else [wanted]
        begun: set[_Value] = set()
        while waiting:
            value = waiting[-1]
            if value in self._known:
                waiting.pop()
                continue
            first = [] if value in begun else [each for each in self._needed(*value) if each not in self._known]
            begun.add(value)
            waiting += first  # a value in a cycle is taken as unknown
            if not first:
                self._work_out(*waiting.pop())
        return self._known[wanted]

    def _needed(self, home: Graph, name: str) -> Iterable[_Value]:
        """The values from which a value is worked out."""
        found = home.held(name)
        if found is not None:
            self._known[home, name] = found
            return ()
        node = home.producer(name)
        if node is None:
            return ()
        needed = [(home.home(given), given) for given in node.input if given]
        if node.op_type == "If" and node.domain in DEFAULT_DOMAINS:
            self._inside[home, node.output[0]] = inside = home.inside(node)
            needed += [(graph.home(output), output) for graph, outputs in inside for output in outputs]
        return needed

    def _work_out(self, home: Graph, name: str) -> None:
        if (home, name) in self._known:
            return
        node = home.producer(name)
        if node is None:
            self._known[home, name] = self._completed(_NONE, home, name)
            return
        for output, found in zip(node.output, self._of_node(node, home), strict=True):
            if output:
                self._known[home, output] = self._completed(found, home, output)

    def _completed(self, found: _Output, home: Graph, name: str) -> Known:
        """What is known with what the graph states, and with atoms for the sizes that are still open."""
        element_type, shape, elements = found
        stated = home.stated_type(name)
        if stated is not None and stated.HasField("tensor_type"):
            said = self._said(stated)
            if self._objects and _contradict(shape, said):
                raise ContradictionError(f"{name!r} is stated to be of another shape than it has")
            if not element_type or shape is None or None in shape:
                home.note_trusted(name)
            element_type = element_type or stated.tensor_type.elem_type
            if shape is None:
                shape = said
            elif said is not None and len(said) == len(shape):
                shape = tuple(other if size is None else size for size, other in zip(shape, said, strict=True))
        if shape is None:
            return Known(element_type, None, elements)
        whole = tuple(self.atoms((home, name, axis)) if size is None else size for axis, size in enumerate(shape))
        return Known(element_type, whole, elements)

    def type(self, known: Known) -> TypeProto | None:
        """What is known as a type, with the names that the model has for sizes; None unless only sizes are open."""
        if not known.element_type or known.shape is None:
            return None
        made = TypeProto()
        made.tensor_type.elem_type = known.element_type
        made.tensor_type.shape.SetInParent()
        for size in known.shape:
            dim = made.tensor_type.shape.dim.add()
            if size.number is not None:
                dim.dim_value = size.number
            elif name := self.atoms.name(size):
                dim.dim_param = name
        return made

    def _said(self, stated: TypeProto) -> Shape | None:
        if not stated.tensor_type.HasField("shape"):
            return None
        return tuple(
            Size.of(dim.dim_value)
            if size_of(dim) is not None
            else of_text(dim.dim_param, self.atoms)
            if dim.dim_param
            else None
            for dim in stated.tensor_type.shape.dim
        )

    # From inputs to outputs

    def _of_node(self, node: NodeProto, home: Graph) -> list[_Output]:
        unknown = [_NONE] * len(node.output)
        if node.domain not in DEFAULT_DOMAINS or any(each.ref_attr_name for each in node.attribute):
            return unknown
        inputs = [self._known.get((home.home(given), given)) if given else None for given in node.input]
        inside = self._inside.pop((home, node.output[0]), None)
        if inside is not None:
            return self._joined(inside, len(node.output))
        if any(each.HasField("g") for each in node.attribute):
            return unknown
        attributes = b"".join([each.SerializeToString() for each in node.attribute])
        places = tuple(bool(each) for each in node.output)
        key = (node.op_type, home.opset, attributes, places, *inputs)
        if key not in self._outputs:
            self._outputs[key] = self._inferred(node, inputs, home.opset)
        return self._outputs[key]

    def _joined(self, inside: Sequence[tuple[Graph, Sequence[str]]], count: int) -> list[_Output]:
        """The outputs of an If: what its branches agree on."""
        found: list[_Output] = []
        for place in range(count):
            branches = [self._known.get((graph.home(outputs[place]), outputs[place])) for graph, outputs in inside]
            one, *others = [each or _NOTHING for each in branches]
            element_type = one.element_type if all(one.element_type == other.element_type for other in others) else 0
            shape = _agreed(one.shape, *(other.shape for other in others))
            found.append((element_type, shape, _agreed(one.elements, *(other.elements for other in others))))
        return found

    def _inferred(self, node: NodeProto, inputs: Sequence[Known | None], opset: int) -> list[_Output]:
        call = Call(node, inputs, self.atoms)
        types = [self._element_type(node, inputs, output, opset) if output else 0 for output in node.output]
        shapes: list[Shape | None] = [None] * len(node.output)
        own = _tried(SHAPES.get(node.op_type), call)
        if own is not None:
            shapes = [own] * len(node.output) if node.op_type in _ALIKE else [own, *shapes[1:]]
        if own is None or any(output and not known for output, known in zip(node.output[1:], shapes[1:], strict=True)):
            told = self._told(node, inputs, opset)
            types = [known or found for known, (found, _, _) in zip(types, told, strict=True)]
            shapes = [found if known is None else known for known, (_, found, _) in zip(shapes, told, strict=True)]
        elements = _tried(ELEMENTS.get(node.op_type), call)
        contents = [elements if place == 0 else None for place in range(len(node.output))]
        return list(zip(types, shapes, contents, strict=True))

    def _element_type(self, node: NodeProto, inputs: Sequence[Known | None], output: str, opset: int) -> int:
        answer = output_element_type(node, output, opset)
        if isinstance(answer, int):
            return answer
        by_name = dict(zip(node.input, inputs, strict=True))
        alike = (by_name[name] for name in answer)
        return next((known.element_type for known in alike if known is not None and known.element_type), 0)

    def _told(self, node: NodeProto, inputs: Sequence[Known | None], opset: int) -> list[_Output]:
        """The outputs by onnx's inference of this node, else their ranks by those of the inputs."""
        found = self._by_schema(node, inputs, opset)
        if found and found[0][1] is None:
            by_name = {name: known or _NOTHING for name, known in zip(node.input, inputs, strict=True)}
            rule = Inputs(node, lambda name: _rank(by_name[name]), lambda name: _length(by_name[name]))
            rank = evaluate_rule(RANKS.get(node.op_type), rule)
            if rank is not None:
                found[0] = (found[0][0], (None,) * rank, None)
        return found

    def _by_schema(self, node: NodeProto, inputs: Sequence[Known | None], opset: int) -> list[_Output]:
        unknown: list[_Output] = [_NONE] * len(node.output)
        by_schema = schema(node.op_type, opset)
        if by_schema is None or may_crash(node, node.input):
            return unknown
        if node.op_type in _TAKES_NAMES_FOR_ZERO and not all(map(_has_numbers, inputs)):
            return unknown
        types = {name: self._encoded(known or _NOTHING) for name, known in zip(node.input, inputs, strict=True) if name}
        data = {
            name: TensorProto.FromString(known.data)
            for name, known in zip(node.input, inputs, strict=True)
            if known is not None and known.data
        }
        try:
            told = shape_inference.infer_node_outputs(
                by_schema, node, types, data, opset_imports=[OperatorSetIdProto(version=opset)]
            )
        except Exception:
            # It raises if it finds the node invalid, several types. Others judge nodes.
            return unknown
        given = (known for name, known in zip(node.input, inputs, strict=True) if name)
        are_known = all(known is not None and known.element_type for known in given)
        return [self._read(told[name], are_known) if name in told else _NONE for name in node.output]

    def _encoded(self, known: Known) -> TypeProto:
        """A type in which sizes have names that `_read` reads."""
        made = TypeProto()
        made.tensor_type.elem_type = known.element_type or TensorProto.FLOAT
        if known.shape is None:
            return made
        made.tensor_type.shape.SetInParent()
        for size in known.shape:
            number = size.number
            if number is not None:
                made.tensor_type.shape.dim.add(dim_value=number)
                continue
            name = self._spelled.get(size)
            if name is None:
                name = self._spelled[size] = f"size{len(self._spelled)}"
                self._sizes[name] = size
            made.tensor_type.shape.dim.add(dim_param=name)
        return made

    def _read(self, told: TypeProto, has_types: bool) -> _Output:
        tensor = told.tensor_type
        element_type = tensor.elem_type if has_types else 0
        if not tensor.HasField("shape"):
            return element_type, None, None
        sizes = (
            Size.of(dim.dim_value) if size_of(dim) is not None else self._sizes.get(dim.dim_param)
            for dim in tensor.shape.dim
        )
        return element_type, tuple(sizes), None


_ALIKE = frozenset({"Split", "TopK"})
"""Operators all of whose outputs are of one shape where `SHAPES` tells it."""

_TAKES_NAMES_FOR_ZERO = frozenset({"Attention"})
"""Operators for which onnx's inference computes with zero for a size that is not a number (seen with onnx 1.23)."""


def _has_numbers(known: Known | None) -> bool:
    return known is None or known.shape is None or all(size.number is not None for size in known.shape)


_Rule: TypeAlias = Callable[[Call], Sequence[Size | None]]


def _tried(rule: _Rule | None, call: Call) -> tuple[Size | None, ...] | None:
    """What a rule gives; None if something it needs is unknown, as anything may be in a broken model."""
    if rule is None:
        return None
    try:
        return tuple(rule(call))
    except (UnknownError, RefusedError, IndexError, TypeError, ValueError):
        return None


def _agreed(*given: Sequence[Size | None] | None) -> tuple[Size | None, ...] | None:
    """What several shapes or contents of one length have in common."""
    known = [each for each in given if each is not None]
    if len(known) < len(given) or len(set(map(len, known))) != 1:
        return None
    return tuple(sizes[0] if len(set(sizes)) == 1 else None for sizes in zip(*known, strict=True))


def _contradict(shape: Shape | None, said: Shape | None) -> bool:
    """Whether two shapes of one value cannot both be right."""
    if shape is None or said is None:
        return False
    numbers = ([None if size is None else size.number for size in each] for each in (shape, said))
    return not may_be_of_one_shape(*numbers)


def _rank(known: Known) -> int | None:
    return None if known.shape is None else len(known.shape)


def _length(known: Known) -> int | None:
    return known.shape[0].number if known.shape is not None and len(known.shape) == 1 else None
