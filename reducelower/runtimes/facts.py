"""Facts about runtimes: what goes wrong, as a sentence, for which nodes, and how that is known."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, make_dataclass
from datetime import date
from functools import cached_property
from typing import Annotated, Any, Literal, get_args

from reducelower.errors import RefusedError
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.runtimes.features import FEATURES
from reducelower.runtimes.kinds import ANY_OPERATOR, Operator
from reducelower.runtimes.ranges import Ranges, Versions
from reducelower.runtimes.structure import HINT, KEY

__all__ = ["Evidence", "Fact", "Is", "ModelFeature", "When"]

Is = Literal["wrong", "refused", "absent", "misshapen", "overflows", "elsewhere"]
"""How a node fails, the worst first: its results are wrong without an error; the runtime rejects it; the runtime lacks
the operator; a model output has the right values in another shape; results are wrong for some values only, mostly very
large or small; results are right, but computed on other hardware than intended."""

ModelFeature = Literal[
    "functions",
    "sparse initializers",
    "outputs that are inputs",
    "named sizes",
    "defaults of inputs",
    "imports of other domains",
    "narrow values in int32_data",
]
"""Features of a whole model, as docs/reference/target-files.md has them."""


def _feature_error(name: str) -> str:
    """Why this is not a feature of models; empty if it is one."""
    domain, _, operator = name.rpartition(".")
    if name in get_args(ModelFeature) or (domain and operator.isidentifier() and domain not in DEFAULT_DOMAINS):
        return ""
    return f"names {name!r}, which is none of {', '.join(get_args(ModelFeature))}, and no operator as DOMAIN.NAME"


Feature = Annotated[str, _feature_error]


@dataclass(frozen=True)
class Evidence:
    """How a fact is known: measured on a version at a date, or documented at an address.

    Attributes:
        measured: names and versions of the measured software.
        on: date of the measurement, or of the page.
        documented: address of the page.
        release: versions that the page is about; empty if it names none.
    """

    measured: str = ""
    on: date | None = None
    documented: str = ""
    release: str = ""

    def __post_init__(self) -> None:
        """Check that it is either measured or documented.

        Raises:
            ValueError: it is neither or both, or a measurement has no date.
        """
        if bool(self.measured) == bool(self.documented) or (self.measured and self.on is None):
            raise ValueError("says either what was measured and on which date, or where it is documented")

    def __str__(self) -> str:
        """For people: what was measured and when, or the address."""
        if self.measured:
            return f"measured on {self.measured}, {self.on}"
        of = ", ".join(filter(None, (f"of {self.release}" if self.release else "", str(self.on or ""))))
        return f"documented{f' ({of})' if of else ''}: {self.documented}"


_Conditions: Any = make_dataclass(
    "_Conditions", [(name, kind | None, None) for name, (kind, _) in FEATURES.items()], frozen=True
)
"""A field for each feature."""


class When(_Conditions):  # type: ignore[misc]  # its fields are those of the table
    """The nodes that are affected; a condition that is None is always met.

    Each condition lists the allowed values of a feature. Of ``attributes``, one entry has to be met for each attribute
    that is named.
    """

    def matches(self, features: object) -> bool:
        """Whether a node meets the conditions; those that the node alone decides are checked first.

        Raises:
            RefusedError: it depends on an unknown rank or element type, or on axes known only at run time.
        """
        unknown = None
        for name, allowed in self.conditions:
            try:
                if not _is_allowed(getattr(features, name), allowed):
                    return False
            except RefusedError as refused:
                unknown = unknown or refused
        if unknown is not None:
            raise unknown
        return True

    def described(self) -> list[str]:
        """The conditions for people, such as ``axes absent or empty``."""
        texts = []
        for name, allowed in self.conditions:
            label = name.replace("_", " ")
            value = " or ".join(sorted(allowed)) if isinstance(allowed, frozenset) else allowed
            texts.append(f"{'' if allowed else 'not '}{label}" if isinstance(allowed, bool) else f"{label} {value}")
        return texts

    @cached_property
    def conditions(self) -> tuple[tuple[str, object], ...]:
        """The name and value of every condition that is stated, in the order of the checks."""
        stated = ((field.name, getattr(self, field.name)) for field in fields(self))
        return tuple((name, allowed) for name, allowed in stated if allowed is not None)


def _is_allowed(value: object, allowed: object) -> bool:
    if isinstance(value, frozenset) and isinstance(allowed, frozenset):
        met = {_attribute_name(text) for text in allowed if _is_met(text, value)}
        return met == set(map(_attribute_name, allowed))
    return value is allowed if isinstance(allowed, bool) else value in allowed  # type: ignore[operator]


def _attribute_name(text: str) -> str:
    return text.partition("=")[0].strip("!")


def _is_met(text: str, attributes: frozenset[str]) -> bool:
    """Whether the attributes of a node meet a condition on one of them.

    A name alone, such as ``reduction``, means that the node states it, ``!axis`` that it does not, ``mode=cubic`` that
    it has this value, stated or by default, ``dilations!=1`` that it states another.
    """
    if text.startswith("!"):
        return text[1:] not in attributes
    name, unequal, value = text.partition("!=")
    return name in attributes and f"{name}={value}" not in attributes if unequal else text in attributes


@dataclass(frozen=True)
class Fact:
    """Something that a runtime gets wrong or refuses.

    Attributes:
        says: a sentence for people.
        operators: operators of the default domain; ``Reduce*`` means all with this prefix, `ANY_OPERATOR` all; none if
            it is about whole models.
        model: features of whole models (`ModelFeature`), or operators of other domains as ``DOMAIN.NAME``; a model with
            any of them is affected. None if it is about nodes of ONNX's own operators.
        outcome: how an affected node fails.
        evidence: how it is known.
        opsets: opset versions of the model; None for all.
        when: the nodes that are affected.
        versions: affected versions of the runtime; None for all.
        not_by: equivalent forms that are no better for such nodes, by their names in reports.
    """

    says: str = field(metadata={HINT: "say in a sentence what goes wrong"})
    outcome: Is = field(metadata={KEY: "is", HINT: "write wrong, overflows, misshapen, refused, absent or elsewhere"})
    evidence: Evidence = field(
        metadata={HINT: 'write { measured = "NAME VERSION", on = DATE } or { documented = "ADDRESS" }'}
    )
    operators: frozenset[Operator] = frozenset()
    model: frozenset[Feature] = frozenset()
    opsets: Ranges | None = None
    when: When = field(default_factory=When)
    versions: Versions | None = None
    not_by: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Check that it is a sentence about some operator, or about whole models.

        Raises:
            ValueError: it has no sentence, or names neither operators nor features of models, or both.
        """
        if not self.says.strip():
            raise ValueError("says nothing; say in a sentence what goes wrong")
        if bool(self.operators) == bool(self.model):
            raise ValueError(f'name operators, of which "{ANY_OPERATOR}" stands for all, or features of a model')
        if self.model and (self.when != When() or self.not_by):
            raise ValueError("is about whole models, and asks for nothing of a node")
        if self.outcome == "misshapen" and (
            self.operators != {ANY_OPERATOR} or self.when != When(rank_out=self.when.rank_out)
        ):
            raise ValueError(
                f'is about what models yield: name no operator but "{ANY_OPERATOR}" and nothing but rank_out'
            )
        object.__setattr__(self, "says", " ".join(self.says.split()))

    @property
    def sentence(self) -> str:
        """The sentence as reports show it; it says so if the fact is documented rather than measured."""
        return self.says if self.evidence.measured else f"{self.says.rstrip('.')} (documented)."

    @property
    def holds_in_every_form(self) -> bool:
        """Whether it is only about the node's inputs and outputs, which every equivalent form shares.

        Axes that are known only at run time are among these, because a reduction reads them in any form.
        """
        if "Reduce*" in self.operators and self.when == When(axes=frozenset({"dynamic"})):
            return True
        names = {name for name, _ in self.when.conditions}
        return ANY_OPERATOR in self.operators and names <= {"data", "element_types", "output_types", "rank", "rank_out"}

    def concerns(self, op_type: str, opset: int) -> bool:
        """Whether nodes of an operator at an opset version may be affected."""
        return self.is_about(op_type) and (self.opsets is None or opset in self.opsets)

    def is_about(self, op_type: str) -> bool:
        """Whether nodes of an operator may be affected; facts about the shape of model outputs affect none."""
        if self.outcome == "misshapen":
            return False
        return op_type in self.operators or any(
            name.endswith(ANY_OPERATOR) and op_type.startswith(name[:-1]) for name in self.operators
        )
