"""Write a runtime target as TOML for `runtimes.reading`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date

from reducelower.runtimes.facts import Fact
from reducelower.runtimes.runtime import Runtime

__all__ = ["fact_lines", "target_text"]


def target_text(runtime: Runtime, remarks: Sequence[str] = ()) -> str:
    """The text of a target file, with remarks as comments at the top."""
    lines = [*(f"# {remark}" for remark in remarks), *([""] if remarks else []), "[runtime]"]
    lines += [f"name = {_text(runtime.name)}", f"version = {_text(runtime.version)}", f"about = {_text(runtime.about)}"]
    lines += [*_entries(measures=runtime.measures), "", "[opsets]"]
    lines += _entries(reads=runtime.reads, prefer=runtime.prefer, ir_version=runtime.ir_version, ml=runtime.ml)
    for fact in runtime.facts:
        lines += ["", *fact_lines(fact)]
    return "\n".join(lines) + "\n"


def fact_lines(fact: Fact) -> list[str]:
    """The lines of a fact in a target file."""
    about = {"operators": fact.operators, "model": fact.model, "opsets": fact.opsets, "is": fact.outcome}
    source = fact.evidence
    evidence = {
        "measured": source.measured,
        "documented": source.documented,
        "release": source.release,
        "on": source.on,
    }
    return [
        "[[fact]]",
        *_entries(says=fact.says, **about, when=dict(fact.when.conditions), versions=fact.versions),
        *_entries(not_by=fact.not_by, evidence=evidence),
    ]


def _entries(**entries: object) -> list[str]:
    """A line for each entry that is set."""
    return [f"{name} = {_value(value)}" for name, value in entries.items() if value or value is False]


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return f"{{ {', '.join(_entries(**value))} }}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | date):
        return str(value)
    if isinstance(value, frozenset):
        return f"[{', '.join(map(_text, sorted(value)))}]"
    return _text(str(value))


def _text(text: str) -> str:
    # TOML's basic strings escape as JSON's do.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
