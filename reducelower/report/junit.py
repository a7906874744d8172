"""The report as JUnit XML: a test case for each model, with all reasons if it did not pass.

It follows the schema of CI systems: ``testsuites``, ``testsuite`` with its counts, ``testcase`` with at most one
``failure``, ``error`` or ``skipped``, which stands for a warning about a model that passed.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree

from reducelower.errors import sentences
from reducelower.outcome import Outcome
from reducelower.report.writing import Report
from reducelower.text import shown, xml_text

__all__ = ["render"]

_ERRORS = ("failed", "unreadable")


def render(report: Report) -> str:
    """The report as XML text."""
    name = f"reducelower {report.command}"
    errors = sum(model.verdict in _ERRORS for model in report.models)
    warned = sum(model.passed and bool(model.warnings) for model in report.models)
    failures = sum(not model.passed for model in report.models) - errors
    seconds = f"{sum(model.seconds for model in report.models):.3f}"
    counts = {"tests": str(len(report.models)), "failures": str(failures), "errors": str(errors), "time": seconds}
    root = ElementTree.Element("testsuites", {"name": name, **counts})
    suite = ElementTree.SubElement(root, "testsuite", {"name": name, **counts, "skipped": str(warned)})
    for model in report.models:
        facts = {"classname": name, "name": _plain(model.source), "time": f"{model.seconds:.3f}"}
        case = ElementTree.SubElement(suite, "testcase", facts)
        if not model.passed:
            kind = "error" if model.verdict in _ERRORS else "failure"
            attributes = {"message": _plain(model.sentence), "type": model.verdict}
            ElementTree.SubElement(case, kind, attributes).text = "\n".join(map(_plain, _reasons(model)))
        elif model.warnings:
            ElementTree.SubElement(case, "skipped", {"message": _plain("; ".join(model.warnings)), "type": "warning"})
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _reasons(model: Outcome) -> Iterator[str]:
    yield from sentences(model.refusals) or model.reasons
    lines = (line for line in model.lines if not line.is_detail or model.difference is not None)
    yield from (f"{line.label}: {line.text}" if line.label else line.text for line in lines)


def _plain(text: str) -> str:
    return xml_text(shown(text))
