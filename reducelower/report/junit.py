"""The report as JUnit XML: a suite per model, a test case per distinct rewrite and per output.

It follows the schema of CI systems: ``testsuites``, ``testsuite`` with its counts, ``testcase`` with at most one of
``failure``, ``error`` and ``skipped``. A check runs nothing, so each model is one test case there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from xml.etree import ElementTree

from reducelower.errors import alike, sentences
from reducelower.lines import enumerated
from reducelower.model.text import shown, xml_text
from reducelower.outcome import Outcome
from reducelower.report.writing import Report

if TYPE_CHECKING:
    from reducelower.difference import Difference
    from reducelower.verification import OutputComparison, SiteVerification

__all__ = ["render"]

_Outcome = Literal["", "failure", "error", "skipped"]
_WRONG: dict[str, _Outcome] = {"failed": "error", "unreadable": "error"}


@dataclass(frozen=True)
class _Case:
    """One test case."""

    name: str
    outcome: _Outcome = ""
    kind: str = ""
    message: str = ""
    lines: tuple[str, ...] = ()
    seconds: float = 0.0


def render(report: Report) -> str:
    """The report as XML text."""
    root = ElementTree.Element("testsuites", {"name": f"reducelower {report.command}"})
    if report.command == "check":
        _add_suite(root, "reducelower check", [(model.source, _checked(model)) for model in report.models])
    else:
        for model in report.models:
            _add_suite(root, model.source, [(model.source, case) for case in _cases(model)])
    for count in ("tests", "failures", "errors"):
        root.set(count, str(sum(int(suite.get(count, 0)) for suite in root)))
    root.set("time", f"{sum(model.seconds for model in report.models):.3f}")
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _add_suite(root: ElementTree.Element, name: str, cases: list[tuple[str, _Case]]) -> None:
    counts = Counter(case.outcome for _, case in cases)
    told = {"failures": counts["failure"], "errors": counts["error"], "skipped": counts["skipped"]}
    facts = {"name": _plain(name), "tests": len(cases), **told, "time": f"{sum(case.seconds for _, case in cases):.3f}"}
    suite = ElementTree.SubElement(root, "testsuite", {key: str(value) for key, value in facts.items()})
    for model, case in cases:
        names = {"classname": _plain(model), "name": _plain(case.name), "time": f"{case.seconds:.3f}"}
        element = ElementTree.SubElement(suite, "testcase", names)
        if case.outcome:
            entry = ElementTree.SubElement(element, case.outcome, {"message": _plain(case.message), "type": case.kind})
            entry.text = "\n".join(map(_plain, case.lines)) or None


def _checked(model: Outcome) -> _Case:
    if model.passed:
        return _Case("check: fits", seconds=model.seconds)
    lines = list(sentences(model.refusals))
    if not lines and model.plan is not None:
        lines = [f"{count} {kind} ({rule})" for (kind, rule), count in sorted(model.plan.rewritten.items())]
    outcome = _WRONG.get(model.verdict, "failure")
    return _Case("check: fits", outcome, model.verdict, model.sentence, tuple(lines), model.seconds)


def _cases(model: Outcome) -> Iterator[_Case]:
    if model.difference is not None:
        yield from _differences(model, model.difference)
        return
    for group, sentence in zip(alike(model.refusals), sentences(model.refusals), strict=True):
        name = enumerated([item.name for item in group], 2) if group[0].operator else "model"
        yield _Case(f"conversion: {name}", "failure", "refused", group[0].reason, (sentence,))
    if not model.refusals:
        wrong = model.verdict in ("refused", "unreadable", "failed")
        outcome = _WRONG.get(model.verdict, "failure") if wrong else ""
        yield _Case("conversion: model", outcome, model.verdict, model.sentence, model.reasons, model.seconds)
    verification = model.verification
    for warning in model.warnings:
        yield _Case("verdict: warning", "skipped", model.verified, warning)
    if verification is not None:
        yield from _sites(verification.sites)
        yield from _outputs(verification.outputs)
        if not verification.ran:
            # Where not being run is a failure, nothing else says so.
            outcome = "failure" if model.verdict in ("different", "not shown") else "skipped"
            yield _Case("output: whole model", outcome, "not run", verification.reason or "it could not be run")
    elif model.plan is not None and not model.refusals:
        for site in model.plan.sites:
            name = f"{site.graph}: {site.op_type} {site.node!r}"
            yield _Case(f"site: {name}", "skipped", "not verified", "it was not verified")


def _differences(model: Outcome, found: Difference) -> Iterator[_Case]:
    if found.same:
        yield _Case("structure: model", seconds=model.seconds)
    for fact in found.facts:
        yield _Case(
            f"{fact.kind}: {fact.what}", "failure", fact.kind, f"{fact.before or 'none'} -> {fact.after or 'none'}"
        )
    for change in found.changes:
        lines = (*(f"- {text}" for text in change.before), *(f"+ {text}" for text in change.after))
        for graph, node in change.nodes:
            told = "; ".join(change.details) or change.kind
            yield _Case(f"node: {graph}: {node}", "failure", change.kind, told, lines)


def _sites(findings: Iterable[SiteVerification]) -> Iterator[_Case]:
    for finding in findings:
        outcome: _Outcome = "failure" if not finding.ok else "skipped" if finding.status == "not run" else ""
        lines = (finding.signature, f"rule: {finding.rule}", *finding.notes)
        if finding.example_inputs:
            lines += (f"inputs: {finding.example_inputs}",)
        yield _Case(f"site: {finding.place}", outcome, finding.said, finding.reason, lines)


def _outputs(outputs: Iterable[OutputComparison]) -> Iterator[_Case]:
    for output in outputs:
        name = f"{output.name} in {output.runtime}"
        if output.verdict == "equal":
            yield _Case(f"output: {name}")
        else:
            outcome: _Outcome = "failure" if output.verdict == "different" else "skipped"
            yield _Case(f"output: {name}", outcome, output.verdict, output.reason)


def _plain(text: str) -> str:
    return xml_text(shown(text))
