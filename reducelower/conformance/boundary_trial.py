"""Try rules of version boundaries on onnx's own cases.

Each case of one node is brought to the near side, and over the boundary by the rules, to every opset version from there
on. onnx.reference runs both, on the values of the case and on edge values; where they differ there, onnxruntime is
asked. What no rule has a part in goes over as the schemas and the shipped rules say.
"""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from onnx import ModelProto, defs

from reducelower.api import convert_version, legalize
from reducelower.errors import ConversionError, RuleError
from reducelower.legalization.tidying import is_repeatable
from reducelower.model.schemas import opset_of, versions
from reducelower.options import Target
from reducelower.rulebook import RuleBook
from reducelower.rulebook.boundaries import Boundaries

__all__ = ["BoundaryTrial", "cases_of", "try_boundaries"]

_EDGES = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-30, 1e30, np.inf, -np.inf, np.nan)
_NOT_AT_EDGES = frozenset({"MaxPool", "QuantizeLinear", "TopK"})
"""Operators that are not tried on edge values: onnx.reference wraps what QuantizeLinear saturates, for TopK NaN has no
order, and its ReduceMax keeps NaN where its MaxPool drops it."""

_OLDEST = 7
"""The oldest opset version whose operators onnx.reference runs as their pages say."""


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
    for name, model, feeds in cases_of(op_type):
        near = max(boundary, opset_of(model)) if down else boundary - 1
        source = model if opset_of(model) == near else _by_shipped_rules(model, near)
        if source is None:
            continue  # the near side cannot say it
        runs = _runs(op_type, source, feeds)
        for goal in (goals if at_every_opset else goals[:1]) if runs else ():
            plain = _by_shipped_rules(source, goal) if own.name else None
            _compare(trial, book, (name, source, goal), runs, plain)
    return trial


_Runs: TypeAlias = "list[tuple[Mapping[str, Any], list[Any]]]"


def _runs(op_type: str, source: ModelProto, feeds: Mapping[str, Any]) -> _Runs:
    """What a model gives for the values of its case, and for edge values where they tell something."""
    edges = () if op_type in _NOT_AT_EDGES else _at_edges(feeds)
    found = [(values, _run(source, values)) for values in (feeds, *edges)]
    return [(values, wanted) for values, wanted in found if wanted is not None]


def _compare(
    trial: BoundaryTrial, book: RuleBook, case: tuple[str, ModelProto, int], runs: _Runs, plain: ModelProto | None
) -> None:
    """Try one conversion; `plain` is what comes of it without the user's rules."""
    name, source, goal = case
    where = f", from opset {opset_of(source)} to {goal}"
    try:
        outcome = legalize(source, Target(goal), rules=book)
    except ConversionError as error:
        if plain is None:
            trial.refused += 1
        else:
            reason = error.refusals[0].reason if error.refusals else str(error)
            trial.wrong.append(f"{name}{where}: refused, {reason}")
        return
    except RuleError as error:
        trial.wrong.append(f"{name}{where}: {error.reason}")
        return
    made = outcome.model
    if made == plain and not any(book.name in site.rule for site in outcome.plan.sites):
        trial.passed_by += 1
        return
    found = [(values, _run(made, values), wanted) for values, wanted in runs]
    told = [(values, given, wanted) for values, given, wanted in found if given is not None]
    if not told:
        return  # the evaluator has no such version
    if all(_all_same(given, wanted) or _agrees_in_onnxruntime(source, made, values) for values, given, wanted in told):
        trial.taken += 1
    else:
        trial.wrong.append(f"{name}{where}: another result than the operator's own")


def _by_shipped_rules(source: ModelProto, goal: int) -> ModelProto | None:
    """What comes of a conversion by the rules that come with the package; None if they refuse it."""
    try:
        return convert_version(source, goal)
    except ConversionError:
        return None


def _agrees_in_onnxruntime(source: ModelProto, result: ModelProto, feeds: Mapping[str, Any]) -> bool:
    """Whether both sides give the same in onnxruntime: onnx.reference is wrong on some old versions."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    found = []
    for model in (source, result):
        try:
            session = onnxruntime.InferenceSession(model.SerializeToString(), options)
            found.append(session.run(None, dict(feeds)))
        except Exception:  # it raises classes of its own, without a common base
            return False
    return _all_same(*found)


def _all_same(found: list[Any], wanted: list[Any]) -> bool:
    return all(_same(one, other) for one, other in zip(found, wanted, strict=True))


def _same(one: Any, other: Any) -> bool:
    if not isinstance(one, np.ndarray) or not isinstance(other, np.ndarray):
        return bool(one == other)
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.dtype.kind != "f":
        return bool((one == other).all())
    close = 1e-2 if one.dtype.itemsize == 2 else 1e-5
    return bool(np.allclose(one, other, rtol=close, atol=close, equal_nan=True))


def _at_edges(feeds: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The same feeds with the values of floating-point inputs replaced by edge values, one input at a time."""
    for name, value in feeds.items():
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.size:
            with np.errstate(over="ignore"):
                edges = np.resize(np.array(_EDGES), value.shape).astype(value.dtype)
            yield {**feeds, name: edges}


def _run(model: ModelProto, feeds: Mapping[str, Any]) -> list[Any] | None:
    from onnx.reference import ReferenceEvaluator

    try:
        with np.errstate(all="ignore"):
            result: Any = ReferenceEvaluator(model).run(None, dict(feeds))
    except Exception:  # the evaluator lacks versions, and raises what numpy raises
        return None
    return list(result)


def cases_of(op_type: str) -> Iterator[tuple[str, ModelProto, dict[str, Any]]]:
    """onnx's cases of one node of the operator, with the values they feed."""
    for case in _cases(op_type):
        model, data = case.model, case.data_sets
        names = [value.name for value in model.graph.input]
        if is_repeatable(model.graph.node[0]) and all(isinstance(value, np.ndarray) for value in data[0][0]):
            yield case.name, model, dict(zip(names, data[0][0], strict=True))


@cache
def _cases(op_type: str) -> list[Any]:
    """Those in modules that are named like the operator: they are computed when loaded, for which all take seconds."""
    from onnx.backend.test.case import node

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _, name, _ in pkgutil.iter_modules(node.__path__):
            if name.replace("_", "").startswith(op_type.lower()):
                importlib.import_module(f"{node.__name__}.{name}")
    cases = [case for case in node._NodeTestCases if case.model is not None and case.data_sets]
    return [case for case in cases if [each.op_type for each in case.model.graph.node] == [op_type]]
