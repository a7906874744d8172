"""Write a runtime target as TOML for `runtimes.reading`."""

from __future__ import annotations

import json
from collections.abc import Iterable

from reducelower.runtimes.facts import Fact
from reducelower.runtimes.ranges import Ranges
from reducelower.runtimes.runtime import Runtime

__all__ = ["fact_lines", "target_text"]


def target_text(runtime: Runtime, remarks: Iterable[str] = ()) -> str:
    """The text of a target file.

    Args:
        runtime: what is known.
        remarks: comments for the top of the file.
    """
    lines = [f"# {remark}" for remark in remarks]
    lines += ["", "[runtime]"] if lines else ["[runtime]"]
    lines += [f"name = {_text(runtime.name)}", f"version = {_text(runtime.version)}", f"about = {_text(runtime.about)}"]
    if runtime.rules:
        lines.append(f"rules = {_text(runtime.rules)}")
    if runtime.measures:
        lines.append(f"measures = {_text(runtime.measures)}")
    lines += ["", "[opsets]", f'reads = "{runtime.reads}"', f"prefer = {runtime.prefer}"]
    if runtime.ir_version is not None:
        lines.append(f"ir_version = {runtime.ir_version}")
    if runtime.ml is not None:
        lines.append(f"ml = {runtime.ml}")
    for fact in runtime.facts:
        lines += ["", *fact_lines(fact)]
    return "\n".join(lines) + "\n"


def fact_lines(fact: Fact) -> list[str]:
    """The lines of a fact, as a target file has them."""
    about = ("model", fact.model) if fact.model else ("operators", fact.operators)
    lines = ["[[fact]]", f"says = {_text(fact.says)}", f"{about[0]} = {_value(about[1])}"]
    if fact.opsets is not None:
        lines.append(f'opsets = "{fact.opsets}"')
    lines.append(f'is = "{fact.outcome}"')
    conditions = [f"{name} = {_value(value)}" for name, value in fact.when.conditions]
    if conditions:
        lines.append(f"when = {{ {', '.join(conditions)} }}")
    if fact.versions is not None:
        lines.append(f'versions = "{fact.versions}"')
    if fact.not_by:
        lines.append(f"not_by = {_value(fact.not_by)}")
    if fact.by:
        lines.append(f"by = {_value(fact.by)}")
    evidence = fact.evidence
    if evidence.measured:
        lines.append(f"evidence = {{ measured = {_text(evidence.measured)}, on = {evidence.on} }}")
    else:
        release = [f"release = {_text(evidence.release)}"] if evidence.release else []
        on = [f"on = {evidence.on}"] if evidence.on else []
        said = ", ".join([f"documented = {_text(evidence.documented)}", *release, *on])
        lines.append(f"evidence = {{ {said} }}")
    return lines


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, frozenset):
        return f"[{', '.join(map(_text, sorted(value)))}]"
    assert isinstance(value, Ranges)
    return f'"{value}"'


def _text(text: str) -> str:
    # TOML's basic strings escape as JSON's do.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
