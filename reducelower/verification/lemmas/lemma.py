"""Lemmas: the rewrites of a model, those together that say the same, and the two sides of each as a pair to run."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from onnx import GraphProto, ModelProto, NodeProto, TypeProto, helper, numpy_helper

from reducelower.model.graph import walk
from reducelower.model.rewrites import Applied, Entry
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.plan import Site
from reducelower.scope.node import blank
from reducelower.types import Inference
from reducelower.types.known import Known
from reducelower.verification.inputs.made import InputSpec, tensor_dims
from reducelower.verification.lemmas.substitution import Stayed
from reducelower.verification.regions.cut import renamed
from reducelower.verification.regions.numbering import captured, content
from reducelower.verification.regions.pairs import Pair
from reducelower.verification.regions.places import Dims, Place

__all__ = ["Lemma", "lemmas_of", "rests_on_names", "sizes_told", "told"]

_IR_VERSION = 10
"""One that allows all that a rule may write."""


@dataclass(eq=False)
class Lemma:
    """That a node equals what replaces it, wherever it is said of a model.

    Attributes:
        entry: the first of the rewrites that say it.
        places: all of the rewrites.
    """

    entry: Entry
    places: list[Applied] = field(default_factory=list)

    @cached_property
    def operands(self) -> list[str]:
        """What either side reads from around, as blanks; a name that is no blank is one of the model."""
        known = {*self.entry.added, *self.entry.constants}
        read = [*captured([self.entry.node]), *captured(self.entry.nodes)]
        return [name for name in dict.fromkeys(read) if name not in known]

    @cached_property
    def stands_alone(self) -> bool:
        """Whether it can be told by itself: nothing in it refers to another value or to a function's attribute."""
        entry = self.entry
        nodes = list(walk([entry.node, *entry.nodes]))
        refers = any(attribute.ref_attr_name for node in nodes for attribute in node.attribute)
        names = self.places[0].names or {}
        return (
            not refers
            and all(node.domain in DEFAULT_DOMAINS for node in nodes)
            and all(name in names for name in self.operands)
        )

    def pair(self, types: Mapping[str, tuple[int, Dims | None]], node: str) -> Pair:
        """Both sides, for operands of these types; values have the names that they have at the first place."""
        entry, first = self.entry, self.places[0]
        names = {**(first.names or {}), **{name: f"after/{name}" for name in (*entry.added, *entry.derived)}}
        held = {names[name]: value for name, value in entry.constants.items()}
        more = {names[name]: numpy_helper.to_array(value) for name, value in entry.added.items()}
        inputs = [InputSpec(names[name], *types[name]) for name in self.operands]
        sides = [_renamed([entry.node], names), _renamed(entry.nodes, names)]
        sides[1] += [
            helper.make_node("Constant", [], [names[name]], value=tensor) for name, tensor in entry.adopted.items()
        ]
        places = [_place(opset) for opset in entry.opsets]
        read = [set(captured(nodes)) for nodes in sides]
        constants = (
            {name: value for name, value in held.items() if name in read[0]},
            {name: value for name, value in {**held, **more}.items() if name in read[1]},
        )
        outputs = [name for name in sides[0][0].output if name]
        site = Site(first.graph, node, entry.node.op_type, str(entry.label), first.index, 0, len(sides[1]))
        return Pair(site, sides[0], sides[1], inputs, constants, places[0], places[1], outputs)


def _renamed(nodes: Iterable[NodeProto], names: Mapping[str, str]) -> list[NodeProto]:
    found = [renamed(node, names) for node in nodes]
    for node in found:
        node.ClearField("name")
    return found


def _place(opset: int) -> Place:
    model = ModelProto(ir_version=_IR_VERSION, graph=GraphProto(name="lemma"))
    model.opset_import.add(version=opset)
    return Place(model, model.graph, Inference(lambda: model))


def lemmas_of(source: ModelProto, applied: Iterable[Applied], stayed: Iterable[Stayed], goal: int) -> list[Lemma]:
    """The distinct lemmas behind rewrites of a model, and behind nodes that stay though their page is another."""
    own = next((item.version for item in source.opset_import if item.domain in DEFAULT_DOMAINS), goal)
    every = [each for each in applied if each.entry is not None]
    every += [_as_applied(each, (own, goal)) for each in stayed]
    found: dict[Hashable, Lemma] = {}
    keys: dict[int, Hashable] = {}
    for each in every:
        entry = each.entry
        assert entry is not None
        if id(entry) not in keys:
            keys[id(entry)] = _key(entry)
        found.setdefault(keys[id(entry)], Lemma(entry)).places.append(each)
    return list(found.values())


def _as_applied(stayed: Stayed, opsets: tuple[int, int]) -> Applied:
    """A node that stays, as a rewrite to itself."""
    names = list(dict.fromkeys(filter(None, (*stayed.node.input, *stayed.node.output))))
    blanks = {name: blank(number) for number, name in enumerate(names)}
    (node,) = _renamed([stayed.node], blanks)
    entry = Entry(node, [node], opsets, {}, {}, {}, frozenset(), (), "")
    return Applied(stayed.graph, stayed.index, entry, {text: name for name, text in blanks.items()})


def _key(entry: Entry) -> Hashable:
    """What tells lemmas apart: both sides, and the types that were asked for. Sizes and the rest are left open."""
    sides = tuple(_bare(node) for node in (entry.node, *entry.nodes))
    held = [(name, content(numpy_helper.from_array(value))) for name, value in sorted(entry.constants.items())]
    held += [(name, content(tensor)) for name, tensor in (*entry.added.items(), *entry.adopted.items())]
    types = tuple(sorted((name, *known[:1], known[1] and len(known[1])) for name, known in told(entry).items()))
    return entry.opsets, entry.label, sides, tuple(held), repr(types)


def _bare(node: NodeProto) -> bytes:
    copy = NodeProto()
    copy.CopyFrom(node)
    for field_name in ("name", "doc_string", "metadata_props"):
        copy.ClearField(field_name)
    return copy.SerializeToString(deterministic=True)


def told(entry: Entry) -> dict[str, tuple[int, Dims | None]]:
    """What the answers say of the operands: element types, 0 where none was asked for, and sizes or ranks."""
    found: dict[str, tuple[int, Dims | None]] = {}
    for question, operand, answer in entry.answers:
        kind, dims = found.get(operand, (0, None))
        if question == "element_type" and isinstance(answer, int):
            kind = answer
        elif question == "type_bytes" and isinstance(answer, bytes):
            tensor = TypeProto.FromString(answer).tensor_type
            kind, dims = tensor.elem_type or kind, dims or tensor_dims(tensor)
        elif question == "shape" and isinstance(answer, tuple):
            dims = answer
        elif question == "known" and isinstance(answer, Known):
            kind = answer.element_type or kind
            dims = dims if answer.shape is None else tuple(size.number for size in answer.shape)
        elif question == "rank" and isinstance(answer, int):
            dims = dims or (None,) * answer
        found[operand] = kind, dims
    return found


def sizes_told(entry: Entry) -> Iterator[int]:
    """The sizes that were answered as numbers: a rewrite may rest on them."""
    for _, dims in told(entry).values():
        yield from (dim for dim in dims or () if isinstance(dim, int))


def rests_on_names(entry: Entry) -> bool:
    """Whether it was answered which sizes of operands have one name: a rewrite may rest on that."""
    return any(isinstance(answer, Known) for _, _, answer in entry.answers)
