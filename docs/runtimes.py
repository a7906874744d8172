"""Make the pages about runtimes from the target files: which operators each gets wrong, and what replaces them.

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
"""The mark of each outcome, the worst first: a wrong answer is worse than none."""

_RIGHT = "✓"

_UNKNOWN = "·"

_OPSETS = (13, 18)
"""The opset versions of most exported models: the last with axes as attributes, and the first with axes as inputs."""

_MOST_OPERATORS = 12
"""How many operators of a fact a page lists; target files list all."""

MEASURED = Path(__file__).parent / "measured"
"""Results before and after ``--for``; ``python -m tools.conformance.proof --keep`` writes those of the suites."""

_MADE = "<!-- Made by `python docs/runtimes.py`; change rules/targets/*.toml instead. -->"

_HEAD = f"""\
{_MADE}

# My runtime, my version: what is wrong, and what to run

Nearly every ONNX runtime silently computes some form of some Reduce operator wrongly, each a different one. Find yours:

1. `reducelower check --for NAME model.onnx` lists the nodes of your model that the runtime gets wrong or refuses.
2. `reducelower convert --for NAME model.onnx -o fitted.onnx` replaces them with nodes that the runtime gets right, and
   verifies the result.
3. For a runtime that is not listed, `reducelower probe` measures it and writes a target file.

`NAME` is one of the names below, which all have a page, or the name of a package. `NAME@VERSION` selects a release,
such as `onnxruntime@1.16`. You may give any version: if nobody measured it, the facts of its neighbours count, and the
outcome says so.
"""

_TABLE = """\
## Before and after

We ran the conformance suite (models of a single node with exact expected values) on each runtime, as it is and again
after `--for`. Slow runtimes ran a fixed sample of it, spread over operators, opset versions and element types; the
table gives its size. *Reported* counts those wrong results that nothing avoids, and that reducelower reports in a note:
large values, or a shape. *Refused by reducelower* counts the models that it refuses to convert, with the reason.
*Worse* counts the models that were right before and are wrong or refused after. tinygrad refuses only float16, because
there was no compiler that supports it. After `--for`, OpenVINO 2022 and 2023 refuse only results whose rank is known at
run time only.

`python -m tools.conformance.proof --runtime NAME --interpreter PYTHON --for TARGET --keep` prints such a line, and with
`--suite nodes` one for the second table. PYTHON is an interpreter that has the runtime.

Some are not in the table, as of 2026-11-22. RKNN-Toolkit2 1.6 is in no registry. The importer of OpenCV 4.5.5 refuses
ReduceMax of two dimensions. ascend, coreml, onnxruntime-directml, onnxruntime-webnn, tensorrt and tidl run only on
their own hardware or system.

| option | measured | models | right / wrong / refused | after `--for` | reported | refused by reducelower | worse |
|---|---|--:|--:|--:|--:|--:|--:|
"""

_EXPORTED = """\
## Exported models

206 models as PyTorch 2.14 writes them by tracing, scripting and dynamo, many with symbolic dimensions: transformers,
other networks, and models that onnxruntime fused or quantized. A result is right if it differs by at most a thousandth
of the largest value from what onnxruntime 1.32 computes without its optimizer. No model that ran is worse afterwards.
`python -m tools.exporters.on_runtimes --runtime NAME --interpreter PYTHON --for TARGET transformers networks processed`
counts them, with `--sized` where sizes were set.

Of 316 single layers, these are made worse. On MNN: the five exports of local response normalization, whose pool over
three dimensions MNN gets right for one kernel and wrong for others. On OpenCV 4.14: casts of whole numbers to integers,
and scattered values whose places become constants.

| option | measured | right / wrong / refused | after `--for` | refused by reducelower | what stops the rest |
|---|---|--:|--:|--:|---|
"""

_NODES = """\
## Other operators

onnx's own tests of a single node, as they are and with all inputs except the first as initializers. reducelower reports
the nodes that come out wrong, and replaces or refuses them where it can (`python -m tools.conformance.proof --suite
nodes`).

| option | measured | models | right / wrong / refused | after `--for` | reported | refused by reducelower | worse |
|---|---|--:|--:|--:|--:|--:|--:|
"""

_LEGEND = f"""\
## What the marks mean

The tables say what is known about each runtime, from which evidence, and what reducelower writes instead. They are made
from the target files in `rules/targets/`.

| mark | meaning |
|:---:|---|
| {_MARKS["wrong"]} | **wrong**: the runtime answers, and the answer is not what ONNX says |
| {_MARKS["overflows"]} | **overflows**: wrong for some values only, mostly very large or very small ones |
| {_MARKS["misshapen"]} | **misshapen**: as a model output, the right values have another shape; a note says so |
| {_MARKS["refused"]} | **refused**: the runtime has the operator, but does not accept some form of it |
| {_MARKS["elsewhere"]} | **elsewhere**: right, but computed on other hardware, such as the CPU |
| {_MARKS["absent"]} | **absent**: the runtime lacks the operator, or lacks it for some element type or opset version |
| {_RIGHT} | **right**: measured, without a failure |
| ( ) | a mark in parentheses is **documented, not measured** |
| {_UNKNOWN} | not measured, and no failure is documented |
"""

_EVIDENCE = """\
Measured facts come from a conformance suite of single-node models, which was run on the version given.
Its expected values come from exact arithmetic. Documented facts come from the page they link to.
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
    lines_of = {f"runtimes/{runtime.name}.md": list(_page(runtime, cases)) for runtime in runtimes}
    return {path: "\n".join(lines).rstrip() + "\n" for path, lines in {"runtimes.md": parts, **lines_of}.items()}


def _entries(name: str) -> Iterator[tuple[dict[str, Any], str, str]]:
    """The measurements in a file, each with its counts before and after the conversion as text."""
    for entry in json.loads((MEASURED / f"{name}.json").read_text("utf-8")):
        before, after = (" / ".join(map(str, entry[key][:3])) for key in ("before", "after"))
        yield entry, before, after


def _suite(name: str) -> Iterator[str]:
    for entry, before, after in _entries(name):
        measured = f"{entry['version']}, {entry['date']}"
        cases = f"{entry['cases']} of {entry['of']}, a sample" if entry["cases"] < entry["of"] else str(entry["cases"])
        counts = f"{cases} | {before} | {after} | {entry['told']} | {entry['after'][3]} | {entry['worse']}"
        yield f"| `--for {entry['target']}` | {measured} | {counts} |\n"


def _exported() -> Iterator[str]:
    for entry, before, after in _entries("exported"):
        counts = f"{before} | {after} | {entry['after'][3]}"
        yield f"| `--for {entry['target']}` | {entry['version']} | {counts} | {entry['note']} |\n"


# At a glance


def _usual_forms(runtimes: Sequence[Runtime], cases: Sequence[Case]) -> Iterator[str]:
    yield "## The usual form, at a glance\n"
    yield "A reduction of float32 over one constant axis with keepdims=0. The first mark is for opset 13, where axes"
    yield "are an attribute except for ReduceSum; the second is for opset 18, where they are an input. A single mark is"
    yield "for both.\n"
    yield from _table_head()
    usual = {(case.operator, case.opset): case for case in reversed(cases)}
    for runtime in runtimes:
        opsets = [opset for opset in _OPSETS if opset in runtime.reads]
        cells = []
        for name in REDUCTIONS:
            facts = ([f for f in runtime.facts if _is_true(f, usual[name, opset])] for opset in opsets)
            cells.append(" ".join(dict.fromkeys(_mark(runtime, at_opset) for at_opset in facts)))
        yield _row(runtime, cells)
    yield ""


def _any_form(runtimes: Sequence[Runtime]) -> Iterator[str]:
    yield "## Any form, at a glance\n"
    yield "The worst outcome that is known for any form of the operator: any way to write axes, keepdims and"
    yield "noop_with_empty_axes, any element type, and any opset version that the runtime reads.\n"
    yield from _table_head()
    for runtime in runtimes:
        read = [opset for opset in range(1, latest_opset() + 1) if opset in runtime.reads]
        facts = ([f for f in runtime.facts if any(f.concerns(name, o) for o in read)] for name in REDUCTIONS)
        yield _row(runtime, (_mark(runtime, of_operator) for of_operator in facts))
    yield ""


def _table_head() -> Iterator[str]:
    yield f"| runtime | version | {' | '.join(name.removeprefix('Reduce') for name in REDUCTIONS)} |"
    yield f"|---|---|{':---:|' * len(REDUCTIONS)}"


def _row(runtime: Runtime, cells: Iterable[str]) -> str:
    return f"| [{runtime.name}](runtimes/{runtime.name}.md) | {runtime.version} | {' | '.join(cells)} |"


def _mark(runtime: Runtime, facts: Sequence[Fact]) -> str:
    """The mark of the worst outcome, in parentheses if it was not measured."""
    for outcome, mark in _MARKS.items():
        evidence = [fact.evidence for fact in facts if fact.outcome == outcome]
        if evidence:
            return mark if any(each.measured for each in evidence) else f"({mark})"
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
    yield f"it prefers {runtime.prefer}.\n"
    shown_for = _by_fact(runtime)
    others = [version for version in shipped_versions(runtime.name) if version and version != runtime.version]
    if others:
        yield f"Other versions with facts, as `{runtime.name}@VERSION`: {', '.join(others)}.\n"
    yield "```sh"
    yield f"reducelower check model.onnx --for {runtime.name}    # what is in the way"
    yield f"reducelower convert model.onnx -o fitted.onnx --for {runtime.name}"
    yield "```\n"
    if not shown_for:
        yield "No failure is known.\n"
        return
    yield "[What the marks mean](../runtimes.md#what-the-marks-mean).\n"
    near = defaultdict[tuple[str, int], list[Case]](list)
    for case in sorted(cases, key=lambda case: abs(case.opset - runtime.prefer)):
        near[case.operator, case.opset].append(case)
    yield "| | what | where | written instead | evidence |"
    yield "|:---:|---|---|---|---|"
    for fact, shown in sorted(shown_for.items(), key=lambda item: list(_MARKS).index(item[0].outcome)):
        versions = [] if fact.versions is None else [f"**versions {fact.versions}**"]
        where = "; ".join([*versions, _operators(fact), *_opsets(fact), *fact.when.described()])
        evidence = (
            f"measured {fact.evidence.on}"
            if fact.evidence.measured
            else f"[documented{fact.evidence.release and ' '}{fact.evidence.release}]({fact.evidence.documented})"
        )
        yield f"| {_MARKS[fact.outcome]} | {fact.says} | {where} | {_instead(shown, fact, near)} | {evidence} |"
    yield ""


def _by_fact(runtime: Runtime) -> dict[Fact, Runtime]:
    """The facts of all versions, each with the version whose replacement is shown: the default one, or the newest."""
    versions = filter(None, reversed(shipped_versions(runtime.name)))
    shown_for: dict[Fact, Runtime] = {}
    for each in (runtime, *(load_runtime(f"{runtime.name}@{version}") for version in versions)):
        for fact in each.facts:
            shown_for.setdefault(fact, each)
    return shown_for


def _operators(fact: Fact) -> str:
    """The first few operators, reductions before others."""
    names = sorted(fact.operators or fact.model, key=lambda name: (not name.startswith("Reduce"), name))
    more = [] if len(names) <= _MOST_OPERATORS else [f"{len(names) - _MOST_OPERATORS} others"]
    return ", ".join(names[:_MOST_OPERATORS] + more)


def _opsets(fact: Fact) -> list[str]:
    return [] if fact.opsets is None else [f"opsets {fact.opsets}"]


def _is_true(fact: Fact, case: Case) -> bool:
    return fact.concerns(case.operator, case.opset) and fact.when.matches(case.features)


def _instead(runtime: Runtime, fact: Fact, cases: Mapping[tuple[str, int], Sequence[Case]]) -> str:
    """What the engine writes for the first case that the fact is true of."""
    if fact.outcome == "misshapen":
        return "left as it is, with a note"
    for (operator, opset), of_operator in cases.items():
        if opset in runtime.reads and fact.concerns(operator, opset):
            for case in of_operator:
                if fact.when.matches(case.features):
                    return _answer(runtime, case)
    return "no case in the suite"


def _answer(runtime: Runtime, case: Case) -> str:
    """What replaces the node at its own opset version, or else at the one that the runtime prefers."""
    plan = _plan(Target(case.opset, runtime=runtime), case)
    if plan is not None:
        return plan.sites[0].rule.removesuffix(f" for {runtime.name}") if plan.sites else "left as it is"
    if case.opset != runtime.prefer and _plan(Target(runtime.prefer, runtime=runtime), case) is not None:
        return f"converted to opset {runtime.prefer}"
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
