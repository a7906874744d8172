"""Works out what is known about a value from the nodes that compute it: each question by itself, once per run.

Element type, rank, shape and contents of a value are four questions. Each is followed back only as far as its own
answer needs: the rank of a sum asks for two ranks and for no size. A node answers by the rules of its operator, else by
onnx's own inference of that one node. What a graph states is used where nodes leave something open: exporters leave
stale shapes in value_info.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onnx import NodeProto, TypeProto

from reducelower.arguments import LARGEST_RANK
from reducelower.errors import RefusedError
from reducelower.model.attributes import value_of
from reducelower.model.element_types import formal_at, only_element_type, output_element_type
from reducelower.model.graph import subgraphs
from reducelower.model.schemas import DEFAULT_DOMAINS, schema
from reducelower.model.value_info import has_whole_shape, may_be_of_one_shape, rank_of, size_of
from reducelower.model.value_info import sizes as sizes_of
from reducelower.types.call import Call, UnknownError
from reducelower.types.elements import ELEMENTS
from reducelower.types.known import Elements, Known, Question, Shape
from reducelower.types.ranks import CONTRIB, ML_RANKS, RANKS, UNLISTED, Output, RankOf
from reducelower.types.shapes import SHAPES
from reducelower.types.sizes import Size, of_text
from reducelower.types.telling import NOTHING, TENSOR, Telling, Told, can_be_told
from reducelower.types.views import Atoms, ContradictionError, Graph, Held, Source

__all__ = ["Resolver", "carried", "is_not_followed"]


_DEEPEST = 50
"""How many values are followed by recursion; a deeper one is worked out first, from an explicit stack."""

_OPEN = object()
"""In place of an answer that was not worked out yet."""

_UNKNOWN: dict[Question, Any] = {
    "element_type": 0,
    "container": b"",
    "rank": None,
    "shape": None,
    "elements": None,
}


class _FirstError(Exception):
    """Another question has to be answered first."""

    def __init__(self, question: Question, home: Graph, name: str) -> None:
        super().__init__()
        self.wanted = question, home, name


@dataclass(slots=True, eq=False)
class _Made:
    """The node that computes a value, found once for all questions about the value.

    Attributes:
        node: the node.
        place: the place of the value among its outputs.
        is_followed: whether it is of the default domain, and all of its attributes are known.
    """

    node: NodeProto
    place: int
    is_followed: bool


class Resolver:
    """What is known about the values of one model."""

    def __init__(self, atoms: Atoms | None = None, *, objects: bool = False) -> None:
        """Start with nothing.

        Args:
            atoms: numbers new atoms.
            objects: whether to raise if a graph states another shape than nodes yield.
        """
        self._objects = objects
        self.atoms = atoms or Atoms()
        self._answers: dict[Question, dict[tuple[Hashable, str], Any]] = {question: {} for question in _UNKNOWN}
        self._held: dict[tuple[Hashable, str], Held | None] = {}
        self._telling = Telling()
        self._inside: dict[tuple[Hashable, str], Sequence[tuple[Graph, Sequence[str]]]] = {}
        self._told: dict[tuple[Hashable, str], tuple[Sequence[Told | None], Sequence[Told]]] = {}
        self._made: dict[tuple[Hashable, str], _Made | None] = {}
        self._depth = 0

    def known(self, name: str, graph: Graph) -> Known:
        """All that is known about a value.

        Raises:
            ContradictionError: a graph states another type of it, or of what it is computed from, than nodes yield.
        """
        home = graph.home(name)
        held = self._held_by(home, name)
        if isinstance(held, Known):
            return held
        shape = self._ask("shape", home, name)
        return Known(self._ask("element_type", home, name), shape, self._ask("elements", home, name))

    def element_type(self, name: str, graph: Graph) -> int:
        """The element type of a tensor (`TensorProto.DataType`); 0 if it is unknown or not a tensor."""
        return self._ask("element_type", graph, name)  # type: ignore[no-any-return]

    def rank(self, name: str, graph: Graph) -> int | None:
        """The rank of a tensor; None if unknown."""
        return self._ask("rank", graph, name)  # type: ignore[no-any-return]

    def shape(self, name: str, graph: Graph) -> tuple[Size, ...] | None:
        """The shape of a tensor; None if the rank is unknown."""
        return self._ask("shape", graph, name)  # type: ignore[no-any-return]

    def forget(self, name: str, graph: Graph) -> None:
        """Forget what was said about a value, which is a constant from now on."""
        value = graph.home(name).place, name
        for found in (self._held, *self._answers.values()):
            found.pop(value, None)

    def type(self, name: str, graph: Graph, *, may_lack_rank: bool = False) -> TypeProto | None:
        """The type of a value, with the names that the model has for sizes; None unless only sizes are open, or the
        rank as well if it may be."""
        made = TypeProto()
        element_type = self._ask("element_type", graph, name)
        if not element_type:
            container = self._ask("container", graph, name)
            return TypeProto.FromString(container) if container else None
        shape = self._ask("shape", graph, name)
        made.tensor_type.elem_type = element_type
        if shape is None:
            return made if may_lack_rank else None
        made.tensor_type.shape.SetInParent()
        for size in shape:
            dim = made.tensor_type.shape.dim.add()
            if size.number is not None:
                dim.dim_value = size.number
            elif name := self.atoms.name(size):
                dim.dim_param = name
        return made

    # Questions, followed back

    def _ask(self, question: Question, graph: Graph, name: str) -> Any:
        home = graph.home(name)
        found = self._answers[question].get((home.place, name), _OPEN)
        if found is not _OPEN:
            return found
        if self._depth:
            return self._answer(question, home, name)
        # An explicit stack, since the graph may be deeper than Python's recursion limit.
        waiting = [(question, home, name)]
        begun = {(question, home.place, name)}
        while True:
            try:
                found = self._answer(*waiting[-1])
            except _FirstError as first:
                question, home, name = first.wanted
                if (question, home.place, name) not in begun:
                    begun.add((question, home.place, name))
                    waiting.append(first.wanted)
                    continue
                question, home, name = waiting[-1]
                found = self._answers[question][home.place, name] = _UNKNOWN[question]  # it is in a cycle
            waiting.pop()
            if not waiting:
                return found

    def _answer(self, question: Question, home: Graph, name: str) -> Any:
        answers, value = self._answers[question], (home.place, name)
        found = answers.get(value, _OPEN)
        if found is not _OPEN:
            return found
        if self._depth == _DEEPEST:
            raise _FirstError(question, home, name)
        answers[value] = _UNKNOWN[question]  # for a value in a cycle
        self._depth += 1
        try:
            held = self._held_by(home, name)
            if held is None:
                answers[value] = _WAYS[question](self, home, name)
            elif question == "shape":
                answers[value] = self._with_atoms(held.answer(question), home, name)
            else:
                answers[value] = held.answer(question)
        except BaseException:
            del answers[value]
            raise
        finally:
            self._depth -= 1
        return answers[value]

    def _held_by(self, home: Graph, name: str) -> Held | None:
        value = home.place, name
        if value not in self._held:
            self._held[value] = home.held(name)
        return self._held[value]

    def _made_by(self, home: Graph, name: str) -> _Made | None:
        """The node of a graph that computes a value, and the value's place there; None if no node does."""
        value = home.place, name
        if value not in self._made:
            node = home.producer(name)
            self._made[value] = None
            if node is not None:
                is_followed = _is_followed(node)
                # For all outputs together: a node may have thousands.
                for place, output in enumerate(node.output):
                    self._made[home.place, output] = _Made(node, place, is_followed)
        return self._made[value]

    def _element_type(self, home: Graph, name: str) -> int:
        stated = home.stated_type(name)
        if stated is not None and (stated.tensor_type.elem_type or stated.WhichOneof("value") not in TENSOR):
            return stated.tensor_type.elem_type
        made = self._made_by(home, name)
        found = 0
        if made is None:
            found = self._over("element_type", home.handed(name))
        elif (version := home.version(_domain(made.node))) is not None:
            answer = output_element_type(made.node, made.place, version)
            if isinstance(answer, int):
                found = answer
            else:
                types = (self._ask("element_type", home, given) for given in answer)
                found = next((each for each in types if each), 0)
        if made is not None and not found:
            found = self._over("element_type", self._sources_inside(made, home))
            found = found or self._listed_type(made, home)
            found = found or self._told_of(made, home).element_type
        return found or self._type_of_neighbours(home, name)

    def _listed_type(self, made: _Made, home: Graph) -> int:
        """The element type by the tables of operators that have no schema."""
        listed, inputs = _listed(made, home), made.node.input
        if listed is None:
            return 0
        is_said = 0 <= listed.like < len(inputs) and inputs[listed.like] != ""
        return self._ask("element_type", home, inputs[listed.like]) if is_said else listed.element_type

    def _type_of_neighbours(self, home: Graph, name: str) -> int:
        """The element type that a value must have since an operator reads it together with others, or yields others."""
        for reader in home.readers(name):
            taken = schema(reader.op_type, home.opset) if reader.domain in DEFAULT_DOMAINS else None
            formal = None if taken is None else formal_at(taken.inputs, list(reader.input).index(name))
            if taken is None or formal is None:
                continue
            if only := only_element_type(taken, formal):
                return only
            if formal.type_str.startswith(("seq", "optional")):
                continue  # such a variable says nothing about tensors
            formals = [
                *((other, formal_at(taken.inputs, at)) for at, other in enumerate(reader.input)),
                *((other, formal_at(taken.outputs, at)) for at, other in enumerate(reader.output)),
            ]
            for other, alike in formals:
                is_alike = other not in ("", name) and alike is not None and alike.type_str == formal.type_str
                found = self._ask("element_type", home, other) if is_alike else 0
                if found:
                    return found
        return 0

    def _container(self, home: Graph, name: str) -> bytes:
        """The type of a sequence or of an optional value, serialized; empty for a tensor."""
        stated, made = home.stated_type(name), self._made_by(home, name)
        if stated is not None and stated.WhichOneof("value") not in TENSOR:
            return stated.SerializeToString()
        if made is None:
            return self._over("container", home.handed(name))  # type: ignore[no-any-return]
        if made.node.op_type == "SequenceMap" and made.node.domain in DEFAULT_DOMAINS:
            return self._mapped(made, home)
        found: bytes = self._over("container", self._sources_inside(made, home))
        return found or self._told_of(made, home).container

    def _mapped(self, made: _Made, home: Graph) -> bytes:
        """The type of an output of SequenceMap: a sequence of what its body yields."""
        for graph, names in home.inside(made.node):
            element_type = self._ask("element_type", graph, names[made.place])
            if element_type:
                found = TypeProto()
                found.sequence_type.elem_type.tensor_type.elem_type = element_type
                return found.SerializeToString()
        return b""

    def _rank(self, home: Graph, name: str) -> int | None:
        made, found = self._made_by(home, name), None
        if made is not None:
            found = self._rank_of_output(made, home)
            if found is None:
                found = self._over("rank", self._sources_inside(made, home))
        if found is None:
            shape = self._ask("shape", home, name)
            return None if shape is None else len(shape)
        if self._objects and rank_of(home.stated_type(name)) not in (None, found):
            raise ContradictionError(f"{name!r} is stated to be of another rank than it has")
        return found

    def _rank_of_output(self, made: _Made, home: Graph) -> int | None:
        """The rank of an output by the tables of ranks."""
        node = made.node
        if not made.is_followed and any(each.ref_attr_name for each in node.attribute):
            return None
        listed, rule = _listed(made, home), None
        if listed is not None:
            rule = listed.rank
        elif made.place == 0 or node.op_type in _ALIKE:
            rule = _RANKS.get(node.domain, {}).get(node.op_type)
        try:
            found = None if rule is None else rule(self._call(made, home))
        except (UnknownError, TypeError, ValueError):  # in a broken model an attribute may have any type and length
            return None
        return found if found is not None and 0 <= found <= LARGEST_RANK else None

    def _numbers(self, home: Graph, name: str) -> tuple[int, ...] | None:
        """The contents of a small vector of numbers."""
        return Known(elements=self._ask("elements", home, name)).numbers

    def _shape(self, home: Graph, name: str) -> tuple[Size, ...] | None:
        """The shape, with atoms for the sizes that are still open."""
        made, stated = self._made_by(home, name), home.stated_type(name)
        if made is not None:
            shape = self._shape_of_output(made, home)
        else:
            shape = None if has_whole_shape(stated) else self._over("shape", home.handed(name))
        if self._objects and _contradict(shape, sizes_of(stated)):
            raise ContradictionError(f"{name!r} is stated to be of another shape than it has")
        if shape is None or None in shape:
            said = self._said(stated)
            if said is not None:
                home.note_trusted(name)
            if shape is None:
                shape = said
            elif said is not None and len(said) == len(shape):
                shape = tuple(other if size is None else size for size, other in zip(shape, said, strict=True))
        return self._with_atoms(shape, home, name)

    def _with_atoms(self, shape: Shape | None, home: Graph, name: str) -> tuple[Size, ...] | None:
        if shape is None:
            return None
        place = home.place
        return tuple(self.atoms((place, name, axis)) if size is None else size for axis, size in enumerate(shape))

    def _said(self, stated: TypeProto | None) -> Shape | None:
        if stated is None or not stated.tensor_type.HasField("shape"):
            return None
        return tuple(
            Size.of(dim.dim_value)
            if size_of(dim) is not None
            else of_text(dim.dim_param, self.atoms)
            if dim.dim_param
            else None
            for dim in stated.tensor_type.shape.dim
        )

    def _elements(self, home: Graph, name: str) -> Elements | None:
        made = self._made_by(home, name)
        if made is None:
            return self._over("elements", home.handed(name))  # type: ignore[no-any-return]
        if sources := self._sources_inside(made, home):
            return self._over("elements", sources)  # type: ignore[no-any-return]
        return self._tried(ELEMENTS, made, home) if made.place == 0 else None

    # Into graphs and out of them

    def _sources_inside(self, made: _Made, home: Graph) -> Sequence[Source]:
        """What an If, a Loop, a Scan or a call of a function yields for an output, seen from inside."""
        node = made.node
        is_own = node.domain in DEFAULT_DOMAINS
        if is_own and (node.op_type not in _HOLDERS or is_not_followed(node, home) or not made.is_followed):
            return ()
        if not is_own and any(True for _ in subgraphs(node)):
            return ()  # what such a node does with its graphs is not known
        key = home.place, next(filter(None, node.output), "")
        if key not in self._inside:
            self._inside[key] = home.inside(node)
        inside, place = self._inside[key], made.place
        axes: int | None = 0
        along: tuple[Graph, str] | None = None
        if is_own and node.op_type == "If":
            taken = self._numbers(home, node.input[0]) if node.input else None
            if taken:
                branches = [each.name for each in node.attribute if each.HasField("g")]
                wanted = "then_branch" if taken[0] else "else_branch"
                inside = [each for branch, each in zip(branches, inside, strict=True) if branch == wanted]
        elif is_own and node.op_type == "Loop":
            axes = None if place < len(node.input) - 2 else 1
            place += 1  # its body yields its condition first
        elif is_own and place < carried(node):
            return [Source(home, node.input[place])]  # a state keeps its shape
        elif is_own:
            axes = None if value_of(node, "scan_output_axes") else 1
            along = None if value_of(node, "scan_input_axes") else (home, node.input[carried(node)])
        return [Source(graph, names[place], axes, along) for graph, names in inside if place < len(names)]

    def _over(self, question: Question, sources: Sequence[Source]) -> Any:
        """The answer for a value that comes into a graph or out of one: what all it may be have in common."""
        unknown = _UNKNOWN[question]
        if not sources:
            return unknown
        axes = sources[0].axes
        if question in ("element_type", "container"):
            answers = [self._ask(question, each.graph, each.name) for each in sources]
            return answers[0] if all(each == answers[0] for each in answers) else unknown
        if axes is None or (question == "elements" and axes):
            return unknown
        answers = [self._ask(question, each.graph, each.name) for each in sources]
        if question == "rank":
            return answers[0] + axes if answers[0] is not None and all(each == answers[0] for each in answers) else None
        agreed = _agreed(*answers)
        if agreed is None or not axes:
            return agreed
        if axes < 0:
            return agreed[-axes:] if len(agreed) >= -axes else None
        along = None if sources[0].along is None else self._ask("shape", *sources[0].along)
        first = along[0] if along else None
        # A size may be another one in each iteration if it is no number.
        return first, *(size if size is not None and size.number is not None else None for size in agreed)

    # From inputs to outputs

    def _call(self, made: _Made, home: Graph) -> Call:
        # Made for each rule: one that is kept would hold the graph, and its weights, until the garbage collector runs.
        return Call(made.node, lambda question, name: self._ask(question, home, name), self.atoms)

    def _tried(self, table: Mapping[str, Any], made: _Made, home: Graph) -> Shape | None:
        """What the rule of a table gives; None if something it needs is unknown, as all may be in a broken model."""
        rule = table.get(made.node.op_type) if made.is_followed else None
        try:
            return None if rule is None else tuple(rule(self._call(made, home)))
        except (UnknownError, RefusedError, IndexError, TypeError, ValueError):
            return None

    def _shape_of_output(self, made: _Made, home: Graph) -> Shape | None:
        if sources := self._sources_inside(made, home):
            return self._over("shape", sources)  # type: ignore[no-any-return]
        found = self._tried(SHAPES, made, home) if made.place == 0 or made.node.op_type in _ALIKE else None
        if found is None:
            found = self._told_of(made, home).shape
        if found is None:
            rank = self._rank_of_output(made, home)
            found = None if rank is None else (None,) * rank
        return found

    def _told_of(self, made: _Made, home: Graph) -> Told:
        """What onnx's inference of this node tells of an output."""
        node = made.node
        version = home.version(_domain(node))
        if version is None or not can_be_told(node, version):
            return NOTHING
        inputs = [self._given(home, given) if given else None for given in node.input]
        # It is told of all outputs together, which may be thousands.
        key = home.place, next(filter(None, node.output), "")
        asked, told = self._told.get(key, (None, ()))
        if asked != inputs:
            told = self._telling.told(node, version, inputs)
            self._told[key] = inputs, told
        return told[made.place]

    def _given(self, home: Graph, name: str) -> Told:
        """What onnx's inference of a node is told of an input."""
        around = home.home(name)
        element_type, held = self._ask("element_type", around, name), self._held_by(around, name)
        if not element_type and (container := self._ask("container", around, name)):
            return Told(0, None, container)
        return Told(element_type, self._ask("shape", around, name), b"", b"" if held is None else held.answer("data"))


_WAYS: dict[Question, Callable[[Resolver, Graph, str], Any]] = {
    "element_type": Resolver._element_type,
    "container": Resolver._container,
    "rank": Resolver._rank,
    "shape": Resolver._shape,
    "elements": Resolver._elements,
}

_RANKS: Mapping[str, Mapping[str, RankOf]] = {"": RANKS, "ai.onnx": RANKS, "ai.onnx.ml": ML_RANKS}

_SCAN_WITHOUT_BATCH = 9

_HOLDERS = frozenset({"If", "Loop", "Scan"})

_ALIKE = frozenset({"Split", "TopK"})
"""Operators all of whose outputs are of one rank, and of one shape where `SHAPES` tells it."""


def _domain(node: NodeProto) -> str:
    return "" if node.domain in DEFAULT_DOMAINS else node.domain


def _is_followed(node: NodeProto) -> bool:
    """Whether a node is of the default domain, and all of its attributes are known."""
    return node.domain in DEFAULT_DOMAINS and not any(each.ref_attr_name for each in node.attribute)


def _agreed(*given: Sequence[Size | None] | None) -> tuple[Size | None, ...] | None:
    """What several shapes or contents of one length have in common."""
    known = [each for each in given if each is not None]
    if len(known) < len(given) or len(set(map(len, known))) != 1:
        return None
    return tuple(sizes[0] if len(set(sizes)) == 1 else None for sizes in zip(*known, strict=True))


def _contradict(shape: Shape | None, said: Sequence[int | None] | None) -> bool:
    """Whether a shape and the stated sizes of the same value cannot both be right."""
    if shape is None or said is None:
        return False
    return not may_be_of_one_shape([None if size is None else size.number for size in shape], said)


def _listed(made: _Made, home: Graph) -> Output | None:
    """What the tables of operators without a schema say of an output."""
    node, place = made.node, made.place
    if home.version(_domain(node)) is None:
        return None
    if node.domain == "com.microsoft.nchwc":
        # It has operators of the default domain in a blocked layout.
        return Output(0, rank=lambda call: call.rank(0)) if place == 0 else None
    if node.domain == "com.microsoft":
        outputs = CONTRIB.get(node.op_type, ())
    elif node.domain in DEFAULT_DOMAINS and node.op_type in UNLISTED and schema(node.op_type, home.opset) is None:
        outputs = UNLISTED[node.op_type]
    else:
        return None
    return outputs[place] if place < len(outputs) else None


def is_not_followed(node: NodeProto, graph: Graph) -> bool:
    """Whether it is not known what a Scan hands on: that of opset 8 had a batch axis, and a broken one may scan more
    inputs than it has."""
    if node.op_type != "Scan" or node.domain not in DEFAULT_DOMAINS:
        return False
    try:
        scanned = value_of(node, "num_scan_inputs", 0)
    except RefusedError:  # it is an attribute of the function, of which each call has its own
        return True
    is_broken = not isinstance(scanned, int) or not 0 < scanned <= len(node.input)
    return is_broken or graph.opset < _SCAN_WITHOUT_BATCH


def carried(node: NodeProto) -> int:
    """How many inputs of a Scan that is followed are state variables; the others are scanned."""
    return len(node.input) - int(value_of(node, "num_scan_inputs"))
