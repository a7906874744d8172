"""The report as JSON; `schema.json` beside this module documents every field."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from reducelower import __version__
from reducelower.outcome import Outcome
from reducelower.report.writing import Report

__all__ = ["SCHEMA_VERSION", "json_line", "render"]

SCHEMA_VERSION = 2
"""Version of the layout; it changes when a reader of the old layout would break."""


def render(report: Report) -> str:
    """The report as JSON text."""
    facts = {
        "schema": SCHEMA_VERSION,
        "reducelower": __version__,
        "command": report.command,
        "passed": report.passed,
        "models": [_model(model) for model in report.models],
    }
    return json.dumps(facts, indent=2, allow_nan=False) + "\n"


def json_line(model: Outcome) -> str:
    """The report on one model as one line of JSON, described by ``$defs/model`` of the schema."""
    return json.dumps(_model(model), allow_nan=False)


def _model(model: Outcome) -> Mapping[str, Any]:
    plan = model.plan
    facts: dict[str, Any] = {
        "path": model.source,
        "verdict": model.verdict,
        "output": model.output,
        "problems": list(model.reasons),
        "opset": None,
        "ir_version": None,
        "without": [],
        "without_types": [],
        "carried": None,
        "sites": [],
        "refusals": [asdict(refusal) for refusal in model.refusals],
        "notes": [],
        "warnings": list(model.warnings),
        "verification": None if model.verification is None else model.verification.to_dict(),
        "difference": None if model.difference is None else model.difference.to_dict(),
    }
    if plan is not None:
        facts |= {
            "opset": {"source": plan.source_opset, "target": plan.target.opset},
            "ir_version": {"source": plan.ir_version[0], "target": plan.ir_version[1]},
            "without": sorted(plan.target.without),
            "without_types": sorted(plan.target.without_types),
            "carried": plan.carried,
            "sites": [asdict(site) for site in plan.sites],
            "notes": list(plan.notes),
        }
    return facts
