"""The forms of a check's report: text, JSON, GitHub workflow annotations, JUnit XML."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from reducelower import __version__
from reducelower.commandline.console import one_line
from reducelower.commandline.failures import REFUSED
from reducelower.commandline.report import describe_plan, describe_versions, nodes, site_lines
from reducelower.plan import Plan

__all__ = ["REPORTS", "SCHEMA_VERSION", "Checked"]

SCHEMA_VERSION = 1
"""Version of the JSON report's layout; it changes when a reader of the old layout would break."""

_NOT_IN_XML = re.compile("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")


@dataclass(frozen=True)
class Checked:
    """What a check found out about one model.

    Attributes:
        path: the model as the user named it.
        status: exit status for this model alone.
        plan: what a conversion would do; None when it did not come to that.
        problems: sentences that say why there is no plan.
    """

    path: str
    status: int
    plan: Plan | None = None
    problems: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """``legal``, ``rewrite``, ``refused`` or ``unreadable``."""
        if self.plan is None:
            return "refused" if self.status == REFUSED else "unreadable"
        return "refused" if self.plan.refusals else "legal" if self.plan.changes_nothing else "rewrite"

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        plan = self.plan
        if plan is None:
            return "; ".join(map(one_line, self.problems))
        if plan.refusals:
            return f"cannot be converted to opset {plan.target.opset}: {nodes(len(plan.refusals))} refused"
        if plan.changes_nothing:
            return f"legal as it is (opset {plan.source_opset})"
        return f"would be converted ({describe_versions(plan)}): {nodes(len(plan.sites))} rewritten"

    @property
    def details(self) -> list[str]:
        """A line per refusal, or else per operator and rule."""
        if self.plan is None:
            return []
        return [one_line(str(refusal)) for refusal in self.plan.refusals] or describe_plan(self.plan)


def _text(models: Sequence[Checked], verbose: bool) -> str:
    lines: list[str] = []
    for model in models:
        if model.plan is None:
            continue
        lines.append(f"{one_line(model.path)}: {model.sentence}")
        sites = verbose and not model.plan.refusals
        lines += [f"  {line}" for line in (site_lines(model.plan.sites) if sites else model.details)]
    return "\n".join(lines)


def _json(models: Sequence[Checked], verbose: bool) -> str:
    return json.dumps(
        {"schema": SCHEMA_VERSION, "reducelower": __version__, "models": [_plain(model) for model in models]}, indent=2
    )


def _plain(model: Checked) -> Mapping[str, Any]:
    facts: dict[str, Any] = {"path": model.path, "verdict": model.verdict, "problems": list(model.problems)}
    if (plan := model.plan) is not None:
        facts |= {
            "opset": {"source": plan.source_opset, "target": plan.target.opset},
            "ir_version": {"source": plan.ir_version[0], "target": plan.ir_version[1]},
            "carried": plan.carried,
            "sites": [asdict(site) for site in plan.sites],
            "refusals": [asdict(refusal) for refusal in plan.refusals],
            "notes": list(plan.notes),
        }
    return facts


def _github(models: Sequence[Checked], verbose: bool) -> str:
    lines = []
    for model in models:
        if model.verdict == "legal":
            continue
        level = "warning" if model.verdict == "rewrite" else "error"
        place = _property(model.path)
        for text in ([] if level == "warning" else model.details) or [model.sentence]:
            lines.append(f"::{level} file={place},title=reducelower::{_data(text)}")
    return "\n".join(lines)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _junit(models: Sequence[Checked], verbose: bool) -> str:
    from xml.etree import ElementTree

    verdicts = [model.verdict for model in models]
    counts = {
        "tests": str(len(models)),
        "failures": str(verdicts.count("rewrite") + verdicts.count("refused")),
        "errors": str(verdicts.count("unreadable")),
    }
    root = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(root, "testsuite", {"name": "reducelower check", **counts})
    for model in models:
        case = ElementTree.SubElement(
            suite, "testcase", {"classname": "reducelower.check", "name": _xml(model.path), "time": "0"}
        )
        if model.verdict == "legal":
            continue
        kind = "error" if model.verdict == "unreadable" else "failure"
        entry = ElementTree.SubElement(case, kind, {"message": _xml(model.sentence), "type": model.verdict})
        entry.text = _xml("\n".join(model.details))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode")


def _xml(text: str) -> str:
    return _NOT_IN_XML.sub("\ufffd", text)


REPORTS: Mapping[str, Callable[[Sequence[Checked], bool], str]] = {
    "text": _text,
    "json": _json,
    "github": _github,
    "junit": _junit,
}
