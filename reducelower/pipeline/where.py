"""Where a model runs: on every known runtime, unchanged and after fitting."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from reducelower.api import planned
from reducelower.legalization.functions import called_function, functions_of
from reducelower.legalization.versions import ML, imports_of
from reducelower.model.document import Document
from reducelower.model.graph import HOLDING_GRAPHS, all_nodes
from reducelower.model.schemas import DEFAULT_DOMAINS, opset_of
from reducelower.options import Settings, Target
from reducelower.plan import Plan
from reducelower.runtimes import Is, Runtime, load_runtime, shipped_names

__all__ = ["Fault", "OnRuntime", "Word", "where"]

Word = Literal[
    "runs", "nothing known against it", "runs after --for", "nothing known against it after --for", "does not run"
]
"""How a model fares on a runtime. If it "runs", every operator was measured."""

_WHAT_WAS_DONE = re.compile(r" (?:was|were) ")
"""Follows the feature in a sentence about a change of the whole model."""

_TOLERABLE = frozenset({"overflows", "elsewhere", "misshapen"})
"""Outcomes with which a model still runs."""


@dataclass(frozen=True)
class Fault:
    """A known problem of a model on a runtime.

    Attributes:
        kind: how it fails; see `reducelower.runtimes.Is`.
        says: a sentence.
        about: the operators that have it, or a feature of the whole model such as ``opset 20``; empty if `says` has it.
        nodes: the number of nodes that have it; 0 for the whole model.
    """

    kind: Is
    says: str
    about: str = ""
    nodes: int = 0


@dataclass(frozen=True)
class OnRuntime:
    """How a model fares on a runtime.

    Attributes:
        version: the version of the runtime; empty if the facts are not about a particular one.
        word: whether it runs.
        faults: the known problems of the unchanged model.
        left: why it does not run after ``--for``, in sentences.
        note: a sentence if the facts are from other versions.
        is_documented: whether all that is known of the runtime comes from documents and nothing was measured.
    """

    name: str
    version: str
    word: Word
    faults: tuple[Fault, ...] = ()
    left: tuple[str, ...] = ()
    note: str = ""
    is_documented: bool = False


def where(document: Document, runtimes: Iterable[Runtime] | None = None) -> tuple[OnRuntime, ...]:
    """How a model fares on runtimes, by default on the newest version of every shipped one."""
    # Measurements cover plain nodes, and on most runtimes only known sizes.
    model = document.message
    functions = functions_of(model)
    is_plain = all(
        (node.domain in DEFAULT_DOMAINS and node.op_type not in HOLDING_GRAPHS and "Sequence" not in node.op_type)
        or called_function(node) in functions
        for node in all_nodes(model)
    )
    shapes = [value.type.tensor_type.shape for value in model.graph.input]
    is_sized = all(dim.HasField("dim_value") for shape in shapes for dim in shape.dim)
    return tuple(
        _on(document, each, is_covered=is_plain and (is_sized or each.name.startswith("onnxruntime")))
        for each in (map(load_runtime, shipped_names()) if runtimes is None else runtimes)
    )


def _on(document: Document, runtime: Runtime, *, is_covered: bool) -> OnRuntime:
    plan = planned(document, Settings(Target(runtime=runtime)))
    opset = opset_of(document.message)
    unchanged_plan = plan.as_it_is or (plan if plan.target.opset == opset else None)
    faults = [
        *_unread(document, runtime),
        *(Fault("refused", change, about=_WHAT_WAS_DONE.split(change)[0]) for change in plan.fitted),
        *([] if unchanged_plan is None else _faults(unchanged_plan, runtime)),
    ]
    left = tuple(dict.fromkeys(map(str, plan.refusals)))
    is_measured = is_covered and runtime.measures_operators
    word: Word = "runs after --for" if is_measured else "nothing known against it after --for"
    if all(fault.kind in _TOLERABLE for fault in faults):
        word, left = "runs" if is_measured and not document.message.functions else "nothing known against it", ()
    elif left:
        word = "does not run"
    is_documented = bool(runtime.facts) and not any(fact.evidence.measured for fact in runtime.facts)
    return OnRuntime(runtime.name, runtime.version, word, tuple(faults), left, runtime.note, is_documented)


def _unread(document: Document, runtime: Runtime) -> Iterator[Fault]:
    """The versions in a model that a runtime does not read."""
    model = document.message
    opset = opset_of(model)
    if opset not in runtime.reads:
        yield Fault("refused", f"It reads opsets {runtime.reads}.", about=f"opset {opset}")
    if runtime.ir_version is not None and model.ir_version > runtime.ir_version:
        says = f"It reads IR versions up to {runtime.ir_version}."
        yield Fault("refused", says, about=f"IR version {model.ir_version}")
    ml = max((entry.version for _, entry in imports_of(model, ML)), default=0)
    if runtime.ml is not None and ml > runtime.ml:
        yield Fault("refused", f"It reads {ML} up to {runtime.ml}.", about=f"{ML} {ml}")


def _faults(plan: Plan, runtime: Runtime) -> Iterator[Fault]:
    """The problems in a plan: rewritten and refused nodes, grouped by sentence, and what no form avoids."""
    kinds: dict[str, Is] = {fact.sentence: fact.outcome for fact in runtime.facts}

    def known(text: str) -> str:
        """The sentence of the fact that a text is about."""
        return next((sentence for sentence in kinds if sentence in text), "")

    operators: dict[str, list[str]] = {}
    for site in plan.sites:
        if site.because:
            operators.setdefault(site.because, []).append(site.op_type)
    for refusal in plan.refusals:
        operators.setdefault(known(refusal.reason) or refusal.reason, []).append(refusal.operator)
    for says, names in operators.items():
        yield Fault(kinds.get(says, "refused"), says, ", ".join(sorted(filter(None, set(names)))), len(names))
    yield from (Fault(kinds[known(text)], text) for text in plan.unmended if known(text))
