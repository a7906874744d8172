"""Try rules of version boundaries on onnx's own cases.

Each case of one node is brought to the near side, and over the boundary by the rules, to every opset version from there
on, and that is verified as any conversion is. What no rule has a part in goes over as the schemas and the shipped rules
say.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from onnx import ModelProto, defs

from reducelower.api import convert_version, legalize
from reducelower.conformance.onnx_cases import cases_of
from reducelower.errors import ConversionError, RuleError
from reducelower.model.schemas import opset_of, versions
from reducelower.options import Target
from reducelower.rulebook import RuleBook
from reducelower.rulebook.boundaries import Boundaries
from reducelower.verification import verify

__all__ = ["BoundaryTrial", "try_boundaries"]

_OLDEST = 7
"""The oldest opset version that onnxruntime runs, and that cases are tried at."""


@dataclass
class BoundaryTrial:
    """How the rules of one operator fared at one boundary.

    Attributes:
        taken: conversions in which a rule had a part.
        passed_by: conversions in which none had.
        refused: conversions that are refused without the rules, too.
        wrong: what came out wrong, a sentence each.
    """

    operator: str
    way: str
    taken: int = 0
    passed_by: int = 0
    refused: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def outcome(self) -> str:
        """For people."""
        said = f"right in {self.taken} conversions by a rule, {self.passed_by} others"
        if not self.taken and not self.passed_by:
            said = "not tried: onnx has no case of it"
        elif not self.taken:
            said = f"not tried: no case of onnx took a rule, {self.passed_by} others"
        if self.wrong:
            said = f"wrong in {len(self.wrong)} of {self.taken + self.passed_by + len(self.wrong)} conversions"
        return f"{said}, {self.refused} refused" if self.refused else said


_NEAREST = {"absent": 0, "lacking": -1}
"""Below which version of an operator something of it may be absent."""


def try_boundaries(
    book: RuleBook, own: Boundaries, operator: str | None = None, *, at_every_opset: bool = True
) -> Iterator[BoundaryTrial]:
    """Yield how the rules of each operator fared at each of their boundaries.

    Args:
        book: the rule book of the conversions.
        own: its boundary rules.
        operator: the only operator to try.
        at_every_opset: whether cases go on to every opset version behind the boundary.
    """
    for op_type in own.operators if operator is None else (operator,):
        known = versions(op_type)
        for way, boundary in sorted({(each.way, each.boundary(op_type)) for each in own.occasions(op_type)}):
            at = known[_NEAREST[way]] if way in _NEAREST and known else boundary
            yield _tried(book, own, op_type, way, at, at_every_opset=at_every_opset)
    for domain, rules in own.of_domains.items() if operator is None else ():
        for op_type in rules.operators:
            for said in dict.fromkeys(f"{each.way} {each.at}".strip() for each in rules.occasions(op_type)):
                yield BoundaryTrial(f"{domain}.{op_type}", said)


def _tried(
    book: RuleBook, own: Boundaries, op_type: str, way: str, boundary: int, *, at_every_opset: bool
) -> BoundaryTrial:
    down = way != "from"
    trial = BoundaryTrial(op_type, f"{boundary} to {boundary - 1}" if down else f"{boundary - 1} to {boundary}")
    goals = range(boundary - 1, _OLDEST - 1, -1) if down else range(boundary, defs.onnx_opset_version() + 1)
    for name, model, _ in cases_of(op_type):
        near = max(boundary, opset_of(model)) if down else boundary - 1
        source = model if opset_of(model) == near else _by_shipped_rules(model, near)
        if source is None:
            continue  # the near side cannot say it
        for goal in goals if at_every_opset else goals[:1]:
            _compare(trial, book, (name, source, goal), is_shipped=not own.name)
    return trial


def _compare(trial: BoundaryTrial, book: RuleBook, case: tuple[str, ModelProto, int], *, is_shipped: bool) -> None:
    """Try one conversion; rules of a user are held against what comes of it without them."""
    name, source, goal = case
    where = f", from opset {opset_of(source)} to {goal}"
    try:
        outcome = legalize(source, Target(goal), rules=book)
    except ConversionError as error:
        if is_shipped or _by_shipped_rules(source, goal) is None:
            trial.refused += 1
        else:
            reason = error.refusals[0].reason if error.refusals else str(error)
            trial.wrong.append(f"{name}{where}: refused, {reason}")
        return
    except RuleError as error:
        trial.wrong.append(f"{name}{where}: {error.reason}")
        return
    made = outcome.model
    has_part = is_shipped or any(book.name in site.rule for site in outcome.plan.sites)
    if not has_part and made == _by_shipped_rules(source, goal):
        trial.passed_by += 1
        return
    found = verify(source, made, plan=outcome.plan)
    if found.verdict == "equivalent":
        trial.taken += 1
    elif found.verdict == "different":
        trial.wrong.append(f"{name}{where}: {found.why}")


def _by_shipped_rules(source: ModelProto, goal: int) -> ModelProto | None:
    """What comes of a conversion by the rules that come with the package; None if they refuse it."""
    try:
        return convert_version(source, goal)
    except ConversionError:
        return None
