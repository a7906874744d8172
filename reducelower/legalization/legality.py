"""The table of what nodes of each operator need to reach the target, worked out once per operator and opset version."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from onnx import __version__

from reducelower.adapters.crossings import Crossing, crossings
from reducelower.legalization.element_types import dropped_types, occurring
from reducelower.legalization.written_for import EXPERIMENTAL, deprecated_from_start, may_be_of_another_opset
from reducelower.model.document import Document
from reducelower.model.graph import UNLIKE_BRANCHES_SINCE
from reducelower.model.schemas import (
    first_version,
    has_body,
    is_deprecated,
    is_runtime_name,
    schema,
    versions,
)
from reducelower.options import Target
from reducelower.rulebook.boundaries import Boundaries

if TYPE_CHECKING:
    from reducelower.runtimes import Fact

__all__ = ["Treatment", "Treatments"]


@dataclass(frozen=True)
class Treatment:
    """What nodes of one operator at one opset version need to reach the target.

    Attributes:
        crossings: the version boundaries that a node has to cross.
        expand: whether the target excludes the operator, so that a rule's body replaces it.
        refusal: why no node of the operator can be legalized; empty if that depends on the node.
        hint: what to do about the refusal.
        absent: whether the target's opset version lacks the operator.
        dropped: element types, as schemas spell them, that the operator takes here but not at the target.
        facts: facts about the operator on the runtime, at the target's opset version.
        occurs: whether a node of the model may have one of the element types in `dropped`.
        doubtful: whether a node of the model may be written for another opset version than the imported one.
        learned: if onnx's inference knows more about results at the target, so that types may prove wrong there that
            the model states, what to do then.
    """

    crossings: tuple[Crossing, ...] = ()
    expand: bool = False
    refusal: str = ""
    hint: str = ""
    absent: bool = False
    dropped: frozenset[str] = frozenset()
    facts: tuple[Fact, ...] = ()
    occurs: bool = False
    doubtful: bool = False
    learned: str = ""

    @cached_property
    def is_nothing(self) -> bool:
        """Whether every node can stay, apart from its element types."""
        return not (self.crossings or self.expand or self.refusal or self.absent or self.facts)

    @property
    def lets_all_stay(self) -> bool:
        """Whether every node of the model can stay as it is."""
        return self.is_nothing and not (self.occurs or self.doubtful)


class Treatments(dict[str, Treatment]):
    """Treatments by operator, worked out on first use.

    Those of the nodes of a model also depend on what else is in it. Most version boundaries only change element types
    that a given model does not use, and most nodes are written for the opset version that their model imports.
    """

    def __init__(
        self,
        opset: int,
        target: Target,
        own: Boundaries | None,
        model: Document | None = None,
        *,
        repairs: bool = False,
    ) -> None:
        """Start with none.

        Args:
            opset: the opset version of the nodes.
            target: where they go.
            own: the user's own rules for version boundaries.
            model: the model that they are nodes of; None for nodes that replace others.
            repairs: whether every node is in doubt.
        """
        super().__init__()
        self.opset = opset
        self._target = target
        self._own = own
        self._model = model
        self._repairs = repairs

    def __missing__(self, op_type: str) -> Treatment:
        target, model = self._target, self._model
        assert target.opset is not None
        treatment = Treatment(expand=True)
        if op_type not in target.without:
            treatment = _between(op_type, self.opset, target.opset, self._own)
        facts = () if target.runtime is None else target.runtime.facts_about(op_type, target.opset)
        occurs = doubtful = False
        if model is not None:
            dropped = treatment.dropped
            occurs = bool(dropped) and (self._types is None or not self._types.isdisjoint(dropped))
            doubtful = self._repairs or may_be_of_another_opset(op_type, self.opset, model.columns.attributes)
        if facts or occurs or doubtful:
            treatment = replace(treatment, facts=facts, occurs=occurs, doubtful=doubtful)
        self[op_type] = treatment
        return treatment

    @cached_property
    def _types(self) -> frozenset[str] | None:
        assert self._model is not None
        return occurring(self._model, self.opset)


@lru_cache(maxsize=8192)
def _between(op_type: str, opset: int, goal_opset: int, own: Boundaries | None) -> Treatment:
    """What an operator needs between two opset versions."""
    source_opset = first_version(op_type, opset) or opset
    source, goal = schema(op_type, source_opset), schema(op_type, goal_opset)
    if is_runtime_name(op_type):
        return Treatment(absent=True)
    if op_type in EXPERIMENTAL:
        return _experimental(op_type) if opset < _NOT_EXPERIMENTAL <= goal_opset else Treatment()
    if source is None and not deprecated_from_start(op_type, opset):
        return _unknown(op_type, opset)
    if source is None or goal is None:
        return Treatment(absent=True)
    path = crossings(op_type, source_opset, goal_opset, own)
    learned = _learned(op_type, opset, goal_opset)
    return Treatment(path, dropped=dropped_types(source, goal), learned=learned)


def _learned(op_type: str, opset: int, goal_opset: int) -> str:
    """See `Treatment`. Inference knows an operator with a function body, as LessOrEqual below opset 16, by its body."""
    if op_type == "If" and goal_opset < UNLIKE_BRANCHES_SINCE <= opset:
        # With more constants than before, inference may find different shapes in the branches.
        return f"opset {UNLIKE_BRANCHES_SINCE} is the oldest whose branches may give different shapes"
    before, after = schema(op_type, opset), schema(op_type, goal_opset)
    if before is None or after is None or before.has_type_and_shape_inference_function or has_body(before):
        return ""
    reason = f"at opset {opset} inference does not know {op_type}"
    is_known = after.has_type_and_shape_inference_function
    return f"correct the types that the model states; {reason}" if is_known else ""


_NOT_EXPERIMENTAL = 10
"""Below this opset version onnxruntime runs the operators of the first years that no schema has any more."""


def _experimental(op_type: str) -> Treatment:
    versions_with_it = f"below opset {_NOT_EXPERIMENTAL}"
    reason = f"{op_type} was experimental in ONNX's first years, and onnxruntime has it {versions_with_it} only"
    return Treatment(refusal=reason, hint=f"stay {versions_with_it}")


def _unknown(op_type: str, opset: int) -> Treatment:
    if is_deprecated(op_type, opset):
        refusal = f"opset {opset} withdrew {op_type}, so the model is not valid"
        return Treatment(refusal=refusal, hint="export it again, or correct opset_import if it is of an older opset")
    if since := versions(op_type):
        refusal = f"opset {opset} does not have {op_type}, which came with opset {since[0]}, so the model is not valid"
        hint = f"export it again, or correct opset_import if the model is of opset {since[0]} or newer"
        return Treatment(refusal=refusal, hint=hint)
    return Treatment(refusal=f"onnx {__version__} knows no operator {op_type}")
