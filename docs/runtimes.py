"""The pages about runtimes, made from the target files: who gets which operator wrong, and what is written instead.

`python docs/runtimes.py` writes `docs/runtimes.md`, which compares all, and a page for each in `docs/runtimes/`.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from onnx import load_model_from_string

from reducelower.api import legalize
from reducelower.conformance.case import Case
from reducelower.conformance.suite import suite
from reducelower.errors import ConversionError
from reducelower.model.schemas import REDUCTIONS, latest_opset
from reducelower.options import Target
from reducelower.plan import Plan
from reducelower.runtimes.facts import Fact, Is
from reducelower.runtimes.reading import load_runtime, shipped_names, shipped_versions
from reducelower.runtimes.runtime import Runtime

_MARKS: dict[Is, str] = {
    "wrong": "✗",
    "overflows": "∞",
    "misshapen": "▯",
    "refused": "–",
    "absent": "∅",
    "elsewhere": "→",
}
"""The mark of each outcome, the worst first: an answer that is not right is worse than none."""

_RIGHT = "✓"

_UNKNOWN = "·"

_OPSETS = (13, 18)
"""Where exporters write most models: the last version with axes as attributes, and the first with axes as inputs."""

_MOST_OPERATORS = 12
"""How many operators a fact names on the page; target files name all."""

MEASURED = Path(__file__).parent / "measured"
"""What was found before and after ``--for``: of the suites what ``python -m tools.conformance.proof --keep`` writes."""

_MADE = "<!-- Made by `python docs/runtimes.py`; change rules/targets/*.toml instead. -->"

_HEAD = f"""\
{_MADE}

# My runtime, my version: what is wrong, and what to run

Nearly every ONNX runtime silently computes some form of some Reduce operator wrongly, each a different one. Find yours:

1. `reducelower check --for NAME model.onnx` lists the nodes of your model that the runtime gets wrong or refuses.
2. `reducelower convert --for NAME model.onnx -o fitted.onnx` replaces them with what the runtime gets right, verified.
3. For a runtime that is not listed, `reducelower probe` measures it and writes a target file.

`NAME` is one of the names below, each of which has a page, or that of a package; `NAME@VERSION` selects a release, such
as `onnxruntime@1.16`. Any version is taken: of one that nobody measured, the facts of its neighbours count, and the
outcome says so.
"""

_TABLE = """\
## Before and after

The conformance suite (models of a single node with exact expected values) run on each runtime as it is, and again after
`--for`; of slow runtimes a fixed sample of it, spread over operators, opset versions and element types, with its size.
*Told* counts those of the wrong ones of which reducelower says that large values come out wrong, or a shape does, and
nothing mends it. *Refused by reducelower* counts the models that it refuses to convert, with the reason. *Made worse*
counts the models that were right before and are wrong or refused after. What tinygrad refuses is float16, for want of a
compiler that has it; what OpenVINO 2022 and 2023 refuse after `--for` are results whose rank is known at run time only.

A line is what `python -m tools.conformance.proof --runtime NAME --interpreter PYTHON --for TARGET --keep` printed, with
`--suite nodes` for the second table; PYTHON is one that has the runtime.

Not in the table, as of 2026-11-22: RKNN-Toolkit2 1.6 is in no registry; OpenCV 4.5.5 installs, and its importer refuses
ReduceMax of two dimensions; ascend, coreml, onnxruntime-directml, onnxruntime-webnn, tensorrt and tidl run on their own
hardware or system only.

| take | measured | models | right / wrong / refused | after `--for` | told | refused by reducelower | made worse |
|---|---|--:|--:|--:|--:|--:|--:|
"""

_EXPORTED = """\
## Exported models

206 models as PyTorch 2.14 writes them by tracing, scripting and dynamo, many with sizes that have names: transformers,
networks of other kinds, and such as onnxruntime fused or quantized. Right is what lies within a thousandth of the
largest value of what onnxruntime 1.32 gives without its optimizer. Nothing that ran is worse afterwards. A line is what
`python -m tools.exporters.on_runtimes --runtime NAME --interpreter PYTHON --for TARGET transformers networks processed`
counts, with `--sized` where sizes were set.

Of 316 single layers, what is made worse: on MNN the five exports of local response normalization, whose pool over three
dimensions it gets right for one kernel and wrong for others; on OpenCV 4.14 casts to integers of what is whole already,
and puts by index whose places become constants.

| take | measured | right / wrong / refused | after `--for` | refused by reducelower | what stops the rest |
|---|---|--:|--:|--:|---|
"""

_NODES = """\
## Other operators

onnx's own node tests of a single node, as they are and with all inputs but the first as initializers. What comes out
wrong is told, and replaced or refused where it can be (`python -m tools.conformance.proof --suite nodes`).

| take | measured | models | right / wrong / refused | after `--for` | told | refused by reducelower | made worse |
|---|---|--:|--:|--:|--:|--:|--:|
"""

_LEGEND = f"""\
## What the marks mean

What is known of each runtime, how it is known, and what is written instead; all of it is made from the target files in
`rules/targets/`.

| mark | meaning |
|:---:|---|
| {_MARKS["wrong"]} | **wrong**: the runtime answers, and the answer is not what ONNX says |
| {_MARKS["overflows"]} | **overflows**: wrong for some values only, mostly very large or very small ones |
| {_MARKS["misshapen"]} | **misshapen**: right values in another shape, where the model yields them, which is said |
| {_MARKS["refused"]} | **refused**: the runtime has the operator and does not take it in some form |
| {_MARKS["elsewhere"]} | **elsewhere**: right, but not on the hardware that is meant |
| {_MARKS["absent"]} | **absent**: the runtime has no such operator, or none for some element type or opset version |
| {_RIGHT} | **right**: measured, and nothing found against it |
| ( ) | what is in parentheses is **documented, not measured** |
| {_UNKNOWN} | nothing is documented against it, and it was not measured |
"""

_EVIDENCE = """\
Measured facts come from running a conformance suite of single-node models on the runtime at the version given, with
expected values from exact arithmetic. Documented facts come from the page they link to.
"""


def pages() -> Mapping[str, str]:
    """Every page in Markdown, by its path below `docs/`."""
    runtimes = [load_runtime(name) for name in shipped_names()]
    cases = suite()
    parts = [
        _HEAD,
        _TABLE + "".join(_suite("reductions")),
        _EXPORTED + "".join(_exported()),
        _NODES + "".join(_suite("nodes")),
        _LEGEND,
        *_usual_forms(runtimes, cases),
        *_any_form(runtimes),
        _EVIDENCE,
    ]
    found = {f"runtimes/{runtime.name}.md": list(_page(runtime, cases)) for runtime in runtimes}
    return {path: "\n".join(lines).rstrip() + "\n" for path, lines in {"runtimes.md": parts, **found}.items()}


def _entries(name: str) -> Iterator[tuple[dict[str, Any], str, str]]:
    """What was measured of a suite, and its counts before and after a conversion."""
    for entry in json.loads((MEASURED / f"{name}.json").read_text("utf-8")):
        before, after = (" / ".join(map(str, entry[key][:3])) for key in ("before", "after"))
        yield entry, before, after


def _suite(name: str) -> Iterator[str]:
    """The rows of the table of a suite."""
    for entry, before, after in _entries(name):
        measured = f"{entry['version']}, {entry['date']}"
        cases = f"{entry['cases']} of {entry['of']}, a sample" if entry["cases"] < entry["of"] else str(entry["cases"])
        counts = f"{cases} | {before} | {after} | {entry['told']} | {entry['after'][3]} | {entry['worse']}"
        yield f"| `--for {entry['target']}` | {measured} | {counts} |\n"


def _exported() -> Iterator[str]:
    """The rows of the table of exported models."""
    for entry, before, after in _entries("exported"):
        counts = f"{before} | {after} | {entry['after'][3]}"
        yield f"| `--for {entry['target']}` | {entry['version']} | {counts} | {entry['note']} |\n"


# At a glance


def _usual_forms(runtimes: Sequence[Runtime], cases: Sequence[Case]) -> Iterator[str]:
    yield "## The usual form, at a glance\n"
    yield "A reduction of float32 over one constant axis with keepdims=0: at opset 13, where axes are an attribute"
    yield "except for ReduceSum, then at opset 18, where they are an input; one mark if both are the same.\n"
    yield from _table_head()
    usual = {(case.operator, case.opset): case for case in reversed(cases)}
    for runtime in runtimes:
        opsets = [opset for opset in _OPSETS if opset in runtime.reads]
        cells = []
        for name in REDUCTIONS:
            found = [[f for f in runtime.facts if _is_true(f, usual[name, opset])] for opset in opsets]
            cells.append(" ".join(dict.fromkeys(_mark(runtime, facts) for facts in found)))
        yield _row(runtime, cells)
    yield ""


def _any_form(runtimes: Sequence[Runtime]) -> Iterator[str]:
    yield "## Any form, at a glance\n"
    yield "The worst that is known of any form of the operator: however axes, keepdims and noop_with_empty_axes are"
    yield "written, of any element type, at any opset version that the runtime reads.\n"
    yield from _table_head()
    for runtime in runtimes:
        read = [opset for opset in range(1, latest_opset() + 1) if opset in runtime.reads]
        found = ([f for f in runtime.facts if any(f.concerns(name, o) for o in read)] for name in REDUCTIONS)
        yield _row(runtime, (_mark(runtime, facts) for facts in found))
    yield ""


def _table_head() -> Iterator[str]:
    yield f"| runtime | version | {' | '.join(name.removeprefix('Reduce') for name in REDUCTIONS)} |"
    yield f"|---|---|{':---:|' * len(REDUCTIONS)}"


def _row(runtime: Runtime, cells: Iterable[str]) -> str:
    return f"| [{runtime.name}](runtimes/{runtime.name}.md) | {runtime.version} | {' | '.join(cells)} |"


def _mark(runtime: Runtime, facts: Sequence[Fact]) -> str:
    """The worst outcome; in parentheses where no measurement says so."""
    for outcome, mark in _MARKS.items():
        saying = [fact for fact in facts if fact.outcome == outcome]
        if saying:
            return mark if any(fact.evidence.measured for fact in saying) else f"({mark})"
    return _RIGHT if _is_measured(runtime) else _UNKNOWN


def _is_measured(runtime: Runtime) -> bool:
    return any(fact.evidence.measured for fact in runtime.facts)


# One runtime


def _page(runtime: Runtime, cases: Sequence[Case]) -> Iterator[str]:
    yield f"{_MADE}\n"
    yield f"# {runtime.name}\n"
    kind = "**measured**" if _is_measured(runtime) else "*documented, not measured*"
    version = f"version {runtime.version}, " if runtime.version else ""
    yield f"{runtime.about} Facts: {version}{kind}. It reads opsets {runtime.reads};"
    yield f"a model that cannot stay at its own is brought to {runtime.prefer}.\n"
    known_of = _by_fact(runtime)
    others = [version for version in shipped_versions(runtime.name) if version and version != runtime.version]
    if others:
        yield f"Other versions it knows, as `{runtime.name}@VERSION`: {', '.join(others)}.\n"
    yield "```sh"
    yield f"reducelower inspect model.onnx --for {runtime.name}    # what is in the way"
    yield f"reducelower convert model.onnx -o fitted.onnx --for {runtime.name}"
    yield "```\n"
    if not known_of:
        yield "Nothing is known against it.\n"
        return
    yield "[What the marks mean](../runtimes.md#what-the-marks-mean).\n"
    near = defaultdict[tuple[str, int], list[Case]](list)
    for case in sorted(cases, key=lambda case: abs(case.opset - runtime.prefer)):
        near[case.operator, case.opset].append(case)
    yield "| | what | where | written instead | known |"
    yield "|:---:|---|---|---|---|"
    for fact, holding in sorted(known_of.items(), key=lambda item: list(_MARKS).index(item[0].outcome)):
        versions = [] if fact.versions is None else [f"**versions {fact.versions}**"]
        where = "; ".join([*versions, _operators(fact), *_opsets(fact), *fact.when.described()])
        evidence = fact.evidence
        known = (
            f"measured {evidence.on}"
            if evidence.measured
            else f"[documented{evidence.release and ' '}{evidence.release}]({evidence.documented})"
        )
        yield f"| {_MARKS[fact.outcome]} | {fact.says} | {where} | {_instead(holding, fact, near)} | {known} |"
    yield ""


def _by_fact(runtime: Runtime) -> dict[Fact, Runtime]:
    """Every fact of any version, with the version that it is shown for: the runtime's own, or else the newest."""
    versions = filter(None, reversed(shipped_versions(runtime.name)))
    found: dict[Fact, Runtime] = {}
    for each in (runtime, *(load_runtime(f"{runtime.name}@{version}") for version in versions)):
        for fact in each.facts:
            found.setdefault(fact, each)
    return found


def _operators(fact: Fact) -> str:
    """The operators, reductions first; of many the first few."""
    names = sorted(fact.operators or fact.model, key=lambda name: (not name.startswith("Reduce"), name))
    more = [] if len(names) <= _MOST_OPERATORS else [f"{len(names) - _MOST_OPERATORS} others"]
    return ", ".join(names[:_MOST_OPERATORS] + more)


def _opsets(fact: Fact) -> list[str]:
    return [] if fact.opsets is None else [f"opsets {fact.opsets}"]


def _is_true(fact: Fact, case: Case) -> bool:
    return fact.concerns(case.operator, case.opset) and fact.when.matches(case.features)


def _instead(runtime: Runtime, fact: Fact, cases: Mapping[tuple[str, int], Sequence[Case]]) -> str:
    """What the engine makes of the first case that the fact is true of."""
    if fact.outcome == "misshapen":
        return "left as it is, and told"
    for (operator, opset), alike in cases.items():
        if opset in runtime.reads and fact.concerns(operator, opset):
            for case in alike:
                if fact.when.matches(case.features):
                    return _answer(runtime, case)
    return "no case in the suite"


def _answer(runtime: Runtime, case: Case) -> str:
    """What stands in the place of the node, at its own opset version or else at the one the runtime prefers."""
    plan = _plan(Target(case.opset, runtime=runtime), case)
    if plan is not None:
        return plan.sites[0].rule.removesuffix(f" for {runtime.name}") if plan.sites else "left as it is"
    if case.opset != runtime.prefer and _plan(Target(runtime.prefer, runtime=runtime), case) is not None:
        return f"brought to opset {runtime.prefer}"
    return f"refused at opset {case.opset}"


def _plan(target: Target, case: Case) -> Plan | None:
    try:
        return legalize(load_model_from_string(case.model), target).plan
    except ConversionError:
        return None


if __name__ == "__main__":
    folder = Path(__file__).parent
    (folder / "runtimes").mkdir(exist_ok=True)
    for path, text in pages().items():
        (folder / path).write_text(text, encoding="utf-8")
