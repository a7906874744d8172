"""Rewrites as lemmas: equal rewrites are settled once, as two small models made from the record of the rewrite.

Whatever the rewrite did not ask about is free. Types, ranks and sizes that it does not state come from a run of the
source.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any

from onnx import GraphProto, ModelProto, TypeProto, helper, numpy_helper

from reducelower.model.graph import walk
from reducelower.model.rewrites import Entry
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.model.value_info import stated_type
from reducelower.numerics.measure import Array
from reducelower.types import Inference
from reducelower.types.known import Known
from reducelower.types.sizes import numbers_of
from reducelower.verification.checking.checker import Checker, is_plain
from reducelower.verification.findings import DISTANCES, HOLDING, SiteVerification
from reducelower.verification.inputs.declared import Dims, InputSpec
from reducelower.verification.regions.claims import Claim, Rewrite
from reducelower.verification.regions.numbering import captured, content, renamed
from reducelower.verification.regions.pairs import Pair, bare
from reducelower.verification.regions.places import Place
from reducelower.verification.running.source import OutOfTimeError

__all__ = ["Judged", "settled"]

Judged = list[tuple[SiteVerification, list[Claim]]]
"""Findings, each with its claims."""

_SAMPLES = 3  # places of a lemma whose values are sampled
_LEAST = 3  # sets of values to run, unless there are no inputs
_IR_VERSION = 10
"""Allows everything that a rule may write."""


@dataclass(eq=False)
class _Lemma:
    """That a node equals its replacement, as the entry of the memo says, wherever a model was rewritten so."""

    entry: Entry
    claims: list[Claim] = field(default_factory=list)
    rewrites: list[Rewrite] = field(default_factory=list)

    @cached_property
    def operands(self) -> list[str]:
        """What either side reads from outside, as blanks; a name that is no blank is a name in the model."""
        known = {*self.entry.added, *self.entry.constants}
        read = [*captured([self.entry.node]), *captured(self.entry.nodes)]
        return [name for name in dict.fromkeys(read) if name not in known]

    @cached_property
    def places(self) -> list[Mapping[str, str]]:
        """The names by blanks at the first and last places in the main graph.

        Empty if the lemma cannot stand alone, since it refers to another value or calls a function.
        """
        if any(node.domain not in DEFAULT_DOMAINS for node in walk([self.entry.node, *self.entry.nodes])):
            return []
        both = zip(self.claims, self.rewrites, strict=True)
        inside = [names for claim, (_, names) in both if claim.level.path == "graph"]
        found = [*inside[: _SAMPLES - 1], *inside[_SAMPLES - 1 :][-1:]]
        return found if all(name in names for names in found for name in self.operands) else []

    def settled(self, checker: Checker) -> SiteVerification | None:
        """The finding, if value numbering shows that both sides are the same, or if they hold on samples."""
        site = self.claims[0].named
        if all(claim.is_same for claim in self.claims):
            return SiteVerification(site.op_type, site.rule, (), is_proved=True)
        alike: dict[Hashable, list[Sequence[Array]]] = {}
        for names in self.places:
            sample: list[Any] = [checker.seen.get(names[name]) for name in self.operands]
            if not all(map(is_plain, sample)):
                return None
            alike.setdefault(tuple((value.dtype.name, value.ndim) for value in sample), []).append(sample)
        found = [self._of_kind(samples, checker) for samples in alike.values()]
        held = [finding for finding in found if finding is not None]
        return reduce(_joined, held) if held and len(held) == len(found) else None

    def _of_kind(self, samples: Sequence[Sequence[Array]], checker: Checker) -> SiteVerification | None:
        """The finding for operands of the types and ranks that they have at some places; None if it fails."""
        pair = self._pair(samples[0])
        names = [item.name for item in pair.inputs]
        told = (_told(entry).values() for entry in {id(entry): entry for entry, _ in self.rewrites}.values())
        found = checker.settle(
            pair,
            [dict(zip(names, sample, strict=True)) for sample in samples],
            # The sizes that the rewrite was told as numbers, and so may rest on.
            fixed={size for each in told for _, dims in each for size in dims or () if isinstance(size, int)},
            # It may rest on which sizes of its operands have the same name, if it was told that.
            rests_on_names=any(isinstance(answer, Known) for _, _, answer in self.entry.answers),
        )
        too_few = pair.inputs and found.cases < _LEAST
        is_open = found.status not in HOLDING or (pair.is_reduction and found.status == "departs")
        return None if is_open or not found.cases or too_few else found

    def _pair(self, sample: Sequence[Array]) -> Pair:
        """Both sides, for operands like these; values are named as at the first place. Sizes are free unless one."""
        entry, known = self.rewrites[0]
        names = {**known, **{name: f"after/{name}" for name in (*entry.added, *entry.derived)}}
        held = {names[name]: value for name, value in entry.constants.items()}
        more = {names[name]: numpy_helper.to_array(value) for name, value in entry.added.items()}
        inputs = [
            InputSpec(
                names[name],
                helper.np_dtype_to_tensor_dtype(value.dtype),
                tuple(1 if size == 1 else None for size in value.shape),
            )
            for name, value in zip(self.operands, sample, strict=True)
        ]
        nodes, replacement = ([renamed(node, names) for node in side] for side in ([entry.node], entry.nodes))
        for node in (*nodes, *replacement):
            node.ClearField("name")
        replacement += [
            helper.make_node("Constant", [], [names[name]], value=tensor) for name, tensor in entry.adopted.items()
        ]
        read = set(captured(nodes)), set(captured(replacement))
        constants = (
            {name: value for name, value in held.items() if name in read[0]},
            {name: value for name, value in {**held, **more}.items() if name in read[1]},
        )
        outputs = [name for name in nodes[0].output if name]
        before, after = map(_place, entry.opsets)
        return Pair(self.claims[0], nodes, replacement, inputs, constants, before, after, outputs)


def _place(opset: int) -> Place:
    model = ModelProto(ir_version=_IR_VERSION, graph=GraphProto(name="lemma"))
    model.opset_import.add(version=opset)
    return Place(model, Inference(model))


def _key(entry: Entry) -> Hashable:
    """Equal for equal lemmas: both sides, and the types that the rewrite asked for; sizes and the rest are free."""
    sides = tuple(map(bare, (entry.node, *entry.nodes)))
    held = [(name, content(numpy_helper.from_array(value))) for name, value in sorted(entry.constants.items())]
    held += [(name, content(tensor)) for name, tensor in (*entry.added.items(), *entry.adopted.items())]
    types = sorted((name, kind, -1 if dims is None else len(dims)) for name, (kind, dims) in _told(entry).items())
    return entry.opsets, entry.label, sides, tuple(held), tuple(types)


def _told(entry: Entry) -> dict[str, tuple[int, Dims | None]]:
    """Element types and sizes of the operands, as the rewrite asked for them; 0 and None if it did not."""
    found: dict[str, tuple[int, Dims | None]] = {}
    for question, operand, answer in entry.answers:
        kind, dims = found.get(operand, (0, None))
        if question == "element_type" and isinstance(answer, int):
            kind = answer
        elif question == "type_bytes" and isinstance(answer, bytes):
            stated = stated_type(TypeProto.FromString(answer))
            kind, dims = stated.element_type or kind, dims or stated.sizes
        elif question == "shape" and isinstance(answer, tuple):
            dims = answer
        elif question == "known" and isinstance(answer, Known):
            dims = dims if answer.shape is None else numbers_of(answer.shape)
        elif question == "rank" and isinstance(answer, int):
            dims = dims or (None,) * answer
        found[operand] = kind, dims
    return found


def settled(claims: Sequence[Claim], checker: Checker) -> tuple[Judged, list[Claim]]:
    """Settle lemmas by structure, or by running them on operands like those in the model.

    Returns:
        A finding for each lemma that holds, and the claims that are not settled by one.
    """
    found: dict[Hashable, _Lemma] = {}
    keys: dict[int, Hashable] = {}
    for claim in claims:
        if claim.rewrite is not None:
            entry, _ = claim.rewrite
            key = keys.get(id(entry)) or keys.setdefault(id(entry), _key(entry))
            lemma = found.setdefault(key, _Lemma(entry))
            lemma.claims.append(claim)
            lemma.rewrites.append(claim.rewrite)
    checker.watch({names[name] for lemma in found.values() for names in lemma.places for name in lemma.operands})
    judged: Judged = []
    for lemma in found.values():
        with suppress(OutOfTimeError):
            checker.clock.check()
            finding = lemma.settled(checker)
            if finding is not None:
                judged.append((finding, lemma.claims))
    holding = {id(claim) for _, members in judged for claim in members}
    return judged, [claim for claim in claims if id(claim) not in holding]


def _joined(one: SiteVerification, other: SiteVerification) -> SiteVerification:
    """The worse of two findings for one lemma, with the sets of values of both."""
    return replace(
        one if one.status != "equal" else other,
        cases=one.cases + other.cases,
        values=one.values + other.values,
        **{name: max(getattr(one, name), getattr(other, name)) for name in DISTANCES},
    )
