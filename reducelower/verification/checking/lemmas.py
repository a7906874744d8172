"""Rewrites as lemmas: equal rewrites are settled once, as two small models made from the record of the rewrite.

Whatever the rewrite did not ask about is free. Types, ranks and sizes that it does not state come from a run of the
source.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TypeProto, helper, numpy_helper

from reducelower.model.graph import walk
from reducelower.model.rewrites import Entry
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.numerics.measure import Array
from reducelower.types import Inference
from reducelower.types.known import Known
from reducelower.types.sizes import numbers_of
from reducelower.verification.checking.checker import Checker
from reducelower.verification.checking.tally import describe
from reducelower.verification.findings import DISTANCES, HOLDING, SiteVerification
from reducelower.verification.inputs.made import Dims, InputSpec, tensor_dims
from reducelower.verification.regions.claims import Claim
from reducelower.verification.regions.numbering import captured, content
from reducelower.verification.regions.pairs import Pair
from reducelower.verification.regions.places import Place
from reducelower.verification.regions.rewrites import renamed
from reducelower.verification.running.source import OutOfTimeError

__all__ = ["settled"]

_SAMPLES = 3  # places of a lemma whose values are sampled
_LEAST = 3  # sets of values to run, unless there are no inputs
_IR_VERSION = 10
"""Allows everything that a rule may write."""


@dataclass(eq=False)
class _Lemma:
    """That a node equals its replacement, as the entry of the memo says, wherever a model was rewritten so."""

    entry: Entry
    claims: list[Claim] = field(default_factory=list)

    @cached_property
    def operands(self) -> list[str]:
        """What either side reads from outside, as blanks; a name that is no blank is a name in the model."""
        known = {*self.entry.added, *self.entry.constants}
        read = [*captured([self.entry.node]), *captured(self.entry.nodes)]
        return [name for name in dict.fromkeys(read) if name not in known]

    @cached_property
    def places(self) -> list[tuple[Entry, Mapping[str, str]]]:
        """The first and last places in the main graph: the entry of each, and its names by blanks.

        Empty if the lemma cannot stand alone, since it refers to another value or calls a function.
        """
        if any(node.domain not in DEFAULT_DOMAINS for node in walk([self.entry.node, *self.entry.nodes])):
            return []
        inside = [_said(claim) for claim in self.claims if claim.level.path == "graph"]
        found = [*inside[: _SAMPLES - 1], *inside[_SAMPLES - 1 :][-1:]]
        return found if all(name in names for _, names in found for name in self.operands) else []

    def pair(self, types: Mapping[str, tuple[int, Dims | None]]) -> Pair:
        """Both sides, for operands of these types; values are named as at the first place."""
        entry, known = self.entry, _said(self.claims[0])[1]
        names = {**known, **{name: f"after/{name}" for name in (*entry.added, *entry.derived)}}
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
        return Pair(self.claims[0].named, sides[0], sides[1], inputs, constants, places[0], places[1], outputs)


def _said(claim: Claim) -> tuple[Entry, Mapping[str, str]]:
    """The entry of the rewrite behind a claim, and the names of the node by blanks."""
    assert claim.rewrite is not None
    assert claim.rewrite.entry is not None
    return claim.rewrite.entry, claim.rewrite.names or {}


def _renamed(nodes: Iterable[NodeProto], names: Mapping[str, str]) -> list[NodeProto]:
    found = [renamed(node, names) for node in nodes]
    for node in found:
        node.ClearField("name")
    return found


def _place(opset: int) -> Place:
    model = ModelProto(ir_version=_IR_VERSION, graph=GraphProto(name="lemma"))
    model.opset_import.add(version=opset)
    return Place(model, Inference(model))


def _key(entry: Entry) -> Hashable:
    """Equal for equal lemmas: both sides, and the types that the rewrite asked for; sizes and the rest are free."""
    sides = tuple(_bare(node) for node in (entry.node, *entry.nodes))
    held = [(name, content(numpy_helper.from_array(value))) for name, value in sorted(entry.constants.items())]
    held += [(name, content(tensor)) for name, tensor in (*entry.added.items(), *entry.adopted.items())]
    types = tuple(sorted((name, *known[:1], known[1] and len(known[1])) for name, known in _told(entry).items()))
    return entry.opsets, entry.label, sides, tuple(held), repr(types)


def _bare(node: NodeProto) -> bytes:
    copy = NodeProto()
    copy.CopyFrom(node)
    for field_name in ("name", "doc_string", "metadata_props"):
        copy.ClearField(field_name)
    return copy.SerializeToString(deterministic=True)


def _told(entry: Entry) -> dict[str, tuple[int, Dims | None]]:
    """Element types and sizes of the operands, as the rewrite asked for them; 0 and None if it did not."""
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
            dims = dims if answer.shape is None else numbers_of(answer.shape)
        elif question == "rank" and isinstance(answer, int):
            dims = dims or (None,) * answer
        found[operand] = kind, dims
    return found


def settled(claims: Sequence[Claim], checker: Checker) -> tuple[list[SiteVerification], list[Claim]]:
    """Settle lemmas by structure, or by running them on operands like those in the model.

    Returns:
        A finding for each lemma that holds, and the claims that are not settled by one.
    """
    found: dict[Hashable, _Lemma] = {}
    keys: dict[int, Hashable] = {}
    for claim in claims:
        if claim.rewrite is not None:
            entry, _ = _said(claim)
            if id(entry) not in keys:
                keys[id(entry)] = _key(entry)
            found.setdefault(keys[id(entry)], _Lemma(entry)).claims.append(claim)
    lemmas = list(found.values())
    checker.watch({names[name] for lemma in lemmas for _, names in lemma.places for name in lemma.operands})
    findings: list[SiteVerification] = []
    holding: set[int] = set()
    for lemma in lemmas:
        with suppress(OutOfTimeError):
            checker.clock.check()
            finding = _settled(lemma, checker) or _proved(lemma)
            if finding is not None:
                sites = (claim.named for claim in lemma.claims)
                findings.append(replace(finding, nodes=tuple((site.graph, site.node) for site in sites)))
                holding.update(map(id, lemma.claims))
    return findings, [claim for claim in claims if id(claim) not in holding]


def _proved(lemma: _Lemma, signature: str = "") -> SiteVerification | None:
    """A finding, if value numbering shows that both sides are the same."""
    site = lemma.claims[0].named
    proved = SiteVerification(site.op_type, site.rule, signature or site.op_type, (), is_proved=True)
    return proved if all(claim.is_same for claim in lemma.claims) else None


def _settled(lemma: _Lemma, checker: Checker) -> SiteVerification | None:
    kinds: dict[Hashable, list[tuple[Entry, dict[str, Array]]]] = {}
    for entry, names in lemma.places:
        values = ((name, checker.seen.get(names[name])) for name in lemma.operands)
        sample = {
            name: value for name, value in values if isinstance(value, np.ndarray) and value.dtype.kind in "biufOSU"
        }
        if len(sample) < len(lemma.operands):
            return None
        key = tuple((value.dtype.name, value.ndim) for value in sample.values())
        kinds.setdefault(key, []).append((entry, sample))
    found = [_of_kind(lemma, alike, checker) for alike in kinds.values()]
    held = [finding for finding in found if finding is not None]
    return reduce(_joined, held) if held and len(held) == len(found) else None


def _of_kind(
    lemma: _Lemma, alike: Sequence[tuple[Entry, Mapping[str, Array]]], checker: Checker
) -> SiteVerification | None:
    """The finding for a lemma, for operands of the types and ranks that they have at some places; None if it fails."""
    told = [_told(entry) for entry, _ in alike]
    types = {
        name: (helper.np_dtype_to_tensor_dtype(value.dtype), _dims(value, [each.get(name) for each in told]))
        for name, value in alike[0][1].items()
    }
    pair = lemma.pair(types)
    if (proved := _proved(lemma, describe(pair))) is not None:
        return proved
    _, names = _said(lemma.claims[0])
    samples = [{names[name]: value for name, value in sample.items()} for _, sample in alike]
    fixed = {size for claim in lemma.claims for size in _sizes_told(_said(claim)[0])}
    # The rewrite may rest on which sizes of its operands have the same name, if it was told that.
    rests_on_names = any(isinstance(answer, Known) for _, _, answer in lemma.entry.answers)
    found = checker.settle(pair, samples, fixed=fixed, rests_on_names=rests_on_names)
    too_few = pair.inputs and found.cases < _LEAST
    if found.status not in HOLDING or not found.cases or too_few or (pair.is_reduction and found.status == "departs"):
        return None
    return found


def _sizes_told(entry: Entry) -> Iterator[int]:
    """The sizes that the rewrite was told as numbers, and so may rest on."""
    for _, dims in _told(entry).values():
        yield from (dim for dim in dims or () if isinstance(dim, int))


def _dims(value: Array, asked: Sequence[tuple[int, Dims | None] | None]) -> Dims:
    """The sizes of an operand: numbers if the rewrite may rest on them, else symbols, equal for equal sizes."""
    known = [dims for _, dims in filter(None, asked) if dims is not None and len(dims) == value.ndim]
    return tuple(
        size if any(isinstance(dims[at], int) for dims in known) or size == 1 else f"size {size}"
        for at, size in enumerate(value.shape)
    )


def _joined(one: SiteVerification, other: SiteVerification) -> SiteVerification:
    """The worse of two findings for one lemma, with the sets of values of both."""
    return replace(
        one if one.status != "equal" else other,
        cases=one.cases + other.cases,
        values=one.values + other.values,
        is_proved=one.is_proved and other.is_proved,
        **{name: max(getattr(one, name), getattr(other, name)) for name in DISTANCES},
    )
