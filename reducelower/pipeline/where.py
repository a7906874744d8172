"""Where a model runs: on every known runtime, unchanged and after fitting."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from onnx import ModelProto

from reducelower.api import planned
from reducelower.legalization.functions import called_function, functions_of
from reducelower.legalization.versions import ML, imports_of
from reducelower.model.document import Document
from reducelower.model.graph import HOLDING_GRAPHS, all_nodes
from reducelower.model.schemas import DEFAULT_DOMAINS, opset_of
from reducelower.options import Settings, Target
from reducelower.plan import Plan
from reducelower.runtimes import Is, Runtime, load_runtime, shipped_names

__all__ = ["OnRuntime", "Word", "where"]

Word = Literal[
    "runs", "nothing known against it", "runs after --for", "nothing known against it after --for", "does not run"
]
"""How a model fares on a runtime. If it "runs", every operator was measured."""

_TOLERABLE = frozenset({"overflows", "elsewhere", "misshapen"})
"""Outcomes with which a model still runs."""


@dataclass(frozen=True)
class OnRuntime:
    """How a model fares on a runtime; `check` with the runtime says why.

    Attributes:
        version: the version of the runtime; empty if the facts are not about a particular one.
        word: whether it runs.
        faults: how parts of the unchanged model fail, the worst first; see `reducelower.runtimes.Is`.
        is_documented: whether all that is known of the runtime comes from documents and nothing was measured.
    """

    name: str
    version: str
    word: Word
    faults: tuple[Is, ...] = ()
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
    unchanged_plan = plan.as_it_is or (plan if plan.target.opset == opset_of(document.message) else None)
    found = set() if unchanged_plan is None else set(_faults(unchanged_plan, runtime))
    if plan.fitted or not _reads(runtime, document.message):
        found.add("refused")
    is_measured = is_covered and runtime.measures_operators
    word: Word = "runs after --for" if is_measured else "nothing known against it after --for"
    if found <= _TOLERABLE:
        word = "runs" if is_measured and not document.message.functions else "nothing known against it"
    elif plan.refusals:
        word = "does not run"
    is_documented = bool(runtime.facts) and not any(fact.evidence.measured for fact in runtime.facts)
    faults = tuple(kind for kind in get_args(Is) if kind in found)
    return OnRuntime(runtime.name, runtime.version, word, faults, is_documented)


def _reads(runtime: Runtime, model: ModelProto) -> bool:
    """Whether a runtime reads the versions in a model."""
    newest_ml = max((entry.version for _, entry in imports_of(model, ML)), default=0)
    limits = [(model.ir_version, runtime.ir_version), (newest_ml, runtime.ml)]
    return opset_of(model) in runtime.reads and all(most is None or version <= most for version, most in limits)


def _faults(plan: Plan, runtime: Runtime) -> Iterator[Is]:
    """How nodes fail by a plan: those that are rewritten or refused, and what no form avoids."""
    kinds: dict[str, Is] = {fact.sentence: fact.outcome for fact in runtime.facts}

    def known(text: str) -> list[Is]:
        return [kind for sentence, kind in kinds.items() if sentence in text][:1]

    yield from (kinds.get(says, "refused") for says in plan.reasons)
    for refusal in plan.refusals:
        yield from known(refusal.reason) or ["refused"]
    for text in plan.unmended:
        yield from known(text)
