"""The page about runtimes, made from the target files: who gets which operator wrong, and what is written instead.

python -m reducelower.targets.page > docs/runtimes.md
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnx import load_model_from_string

from reducelower.convert import legalize
from reducelower.errors import ConversionError
from reducelower.probe.case import Case
from reducelower.probe.suite import suite
from reducelower.reductions import REDUCTIONS
from reducelower.target import Target
from reducelower.targets.facts import Fact, Is
from reducelower.targets.reading import load_runtime, shipped_names
from reducelower.targets.runtime import Runtime

__all__ = ["page"]

_MARKS: dict[Is, str] = {"wrong": "wrong", "overflows": "overflows", "refused": "refused", "absent": "absent"}

_HEAD = """\
# Runtimes: who gets which reduction wrong

Nearly every ONNX runtime is silently wrong on some form of some Reduce operator, each on another. This page lists what
is known of each, how it is known, and what `reducelower convert --for NAME` writes instead. It is made from the target
files in `rules/targets/`; `reducelower probe` measures a runtime and writes such a file.

"Measured" facts come from running a conformance suite of single-node models on the runtime, with expected values from
exact arithmetic. "Documented" facts come from the place they link to and were not measured. A cell names the worst that
is known of any form of the operator at any opset version the runtime reads; an empty one means that nothing is known
against it.
"""


def page() -> str:
    """The page, in Markdown."""
    runtimes = [load_runtime(name) for name in shipped_names()]
    parts = [_HEAD, *_matrix(runtimes)]
    cases = suite()
    for runtime in runtimes:
        parts += _section(runtime, cases)
    return "\n".join(parts).rstrip() + "\n"


def _matrix(runtimes: Sequence[Runtime]) -> Iterator[str]:
    yield "## At a glance\n"
    yield f"| operator | {' | '.join(f'[{each.name}](#{each.name})' for each in runtimes)} |"
    yield f"|---|{'---|' * len(runtimes)}"
    for op_type in REDUCTIONS:
        yield f"| {op_type} | {' | '.join(_cell(each, op_type) for each in runtimes)} |"
    yield ""


def _cell(runtime: Runtime, op_type: str) -> str:
    """The worst outcome in any form of the operator that the runtime may be given."""
    found = {
        fact.outcome
        for opset in range(1, 100)
        if opset in runtime.reads
        for fact in runtime.facts_about(op_type, opset)
    }
    return next((text for outcome, text in _MARKS.items() if outcome in found), "")


def _section(runtime: Runtime, cases: Sequence[Case]) -> Iterator[str]:
    yield f'<a id="{runtime.name}"></a>\n\n## {runtime}\n'
    yield f"{runtime.about} It reads opsets {runtime.reads}; a model that cannot stay at its own is brought to "
    yield f"{runtime.prefer}.\n"
    if not runtime.facts:
        yield "Nothing is known against it.\n"
        return
    yield "| what | where | written instead | how it is known |"
    yield "|---|---|---|---|"
    for fact in runtime.facts:
        where = "; ".join([", ".join(sorted(fact.operators)), *_opsets(fact), *fact.when.described()])
        known = (
            f"measured {fact.evidence.on}" if fact.evidence.measured else f"[documented]({fact.evidence.documented})"
        )
        yield f"| {fact.outcome}: {fact.says} | {where} | {_instead(runtime, fact, cases)} | {known} |"
    yield ""


def _opsets(fact: Fact) -> list[str]:
    return [] if fact.opsets is None else [f"opsets {fact.opsets}"]


def _instead(runtime: Runtime, fact: Fact, cases: Sequence[Case]) -> str:
    """What the engine makes of the first case of the suite that the fact is true of."""
    for case in cases:
        if case.opset in runtime.reads and fact.concerns(case.operator, case.opset) and _matches(fact, case):
            return _answer(runtime, case)
    return ""


def _matches(fact: Fact, case: Case) -> bool:
    return fact.when.matches(case.features)


def _answer(runtime: Runtime, case: Case) -> str:
    try:
        plan = legalize(load_model_from_string(case.model), Target(case.opset, runtime=runtime)).plan
    except ConversionError:
        return "refused at that opset"
    return plan.sites[0].rule.removesuffix(f" for {runtime.name}") if plan.sites else "left as it is"


if __name__ == "__main__":
    import sys

    sys.stdout.write(page())
