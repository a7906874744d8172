"""Where a model runs: on every known runtime, by version, unchanged and after fitting."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from onnx import ModelProto

from reducelower.api import planned
from reducelower.legalization.run_versions import ML, imports_of
from reducelower.model.document import Document
from reducelower.model.graph import HOLDING_GRAPHS, all_nodes
from reducelower.model.schemas import DEFAULT_DOMAINS, opset_of
from reducelower.options import Settings, Target
from reducelower.plan import Plan
from reducelower.runtimes import Fact, Is, Runtime, load_runtime, shipped_names, shipped_versions

__all__ = ["Fault", "OnRuntime", "OnVersion", "Word", "where"]

Word = Literal["runs", "nothing known against it", "runs after --for", "does not run"]
"""How a model fares on a version of a runtime. For "runs", every operator was measured and no fact applies."""

_AS_IT_IS: frozenset[Word] = frozenset({"runs", "nothing known against it"})

_WHAT_WAS_DONE = re.compile(r" (?:was|were) ")
"""Follows the feature in a sentence about a change of the whole model."""

_TOLERABLE = frozenset({"overflows", "elsewhere", "misshapen"})
"""Outcomes with which a model still runs."""


@dataclass(frozen=True)
class Fault:
    """A known problem of a model on a runtime.

    Attributes:
        kind: how it fails; see `reducelower.runtimes.Is`.
        operators: the operators that have it; empty for a problem of the whole model.
        feature: the feature of the whole model, such as ``opset 20``; empty for a problem of operators.
        nodes: the number of nodes that have it.
        first: the first of these nodes.
    """

    kind: Is
    says: str
    operators: tuple[str, ...] = ()
    feature: str = ""
    nodes: int = 0
    first: str = ""


@dataclass(frozen=True)
class OnVersion:
    """How a model fares on one version of a runtime.

    Attributes:
        version: the version; empty if the facts are not about a particular one.
        word: whether it runs.
        faults: the known problems of the unchanged model.
        left: why it does not run after ``--for``, in sentences.
        note: a sentence if the facts are from other versions.
    """

    version: str
    word: Word
    faults: tuple[Fault, ...] = ()
    left: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class OnRuntime:
    """How a model fares on a runtime.

    Attributes:
        newest: the result on its newest version, or on the requested one.
        words: the result by version, oldest first.
        is_documented: whether all known problems come from documents and none was measured.
        oldest_as_it_is: the oldest version known to run the unchanged model; empty if none does.
        oldest_after: the oldest version that runs it unchanged or after ``--for``.
    """

    name: str
    newest: OnVersion
    words: Mapping[str, Word] = field(default_factory=dict)
    is_documented: bool = False
    oldest_as_it_is: str = ""
    oldest_after: str = ""


def where(model: Document, names: Iterable[str] | None = None) -> tuple[OnRuntime, ...]:
    """How a model (a document for trials) fares on runtimes, by default on every shipped one in all versions.

    A name stands for all versions of a target, and ``NAME@VERSION`` for one.
    """
    covered = _Covered.of(model.message)
    return tuple(_on_runtime(model, covered, name) for name in (shipped_names() if names is None else names))


@dataclass(frozen=True)
class _Covered:
    """Whether measurements of runtimes cover a model: they cover plain nodes, and on most runtimes only known sizes."""

    plain: bool
    sized: bool

    @classmethod
    def of(cls, model: ModelProto) -> _Covered:
        plain = not model.functions and all(
            node.domain in DEFAULT_DOMAINS and node.op_type not in HOLDING_GRAPHS and "Sequence" not in node.op_type
            for node in all_nodes(model)
        )
        shapes = [value.type.tensor_type.shape for value in model.graph.input]
        return cls(plain, all(dim.HasField("dim_value") for shape in shapes for dim in shape.dim))

    def by(self, runtime: Runtime) -> bool:
        """Whether the measurements of a runtime cover the model."""
        return runtime.measures_operators and self.plain and (self.sized or runtime.name.startswith("onnxruntime"))


def _on_runtime(model: Document, covered: _Covered, name: str) -> OnRuntime:
    runtime = load_runtime(name)
    versions = shipped_versions(name) if name in shipped_names() else (runtime.version,)
    results: dict[object, OnVersion] = {}  # many versions have the same facts

    def on(each: Runtime) -> OnVersion:
        key = (each.facts, each.reads, each.prefer, each.ir_version, each.ml)
        results[key] = results.get(key) or _on_version(model, covered, each)
        return results[key]

    words = {each: on(load_runtime(f"{name}@{each}") if len(versions) > 1 else runtime).word for each in versions}
    newest = replace(on(runtime), version=runtime.version, note=runtime.note)
    return OnRuntime(
        runtime.name,
        newest,
        words,
        _is_documented(runtime, newest.faults),
        next((version for version, word in words.items() if word in _AS_IT_IS), ""),
        next((version for version, word in words.items() if word != "does not run"), ""),
    )


def _is_documented(runtime: Runtime, faults: Iterable[Fault]) -> bool:
    """Whether all known problems come from documents, or nothing of the runtime was measured."""
    documented = {fact.sentence for fact in runtime.facts if fact.evidence.documented}
    sentences = {fault.says for fault in faults}
    is_measured = any(fact.evidence.measured for fact in runtime.facts)
    return bool(documented) and (not is_measured or (bool(sentences) and sentences <= documented))


def _on_version(document: Document, covered: _Covered, runtime: Runtime) -> OnVersion:
    model = document.message
    opset = opset_of(model)
    faults: list[Fault] = []
    if opset not in runtime.reads:
        faults.append(Fault("refused", f"It reads opsets {runtime.reads}.", feature=f"opset {opset}"))
    if runtime.ir_version is not None and model.ir_version > runtime.ir_version:
        sentence = f"It reads IR versions up to {runtime.ir_version}."
        faults.append(Fault("refused", sentence, feature=f"IR version {model.ir_version}"))
    ml = max((entry.version for _, entry in imports_of(model, ML)), default=0)
    if runtime.ml is not None and ml > runtime.ml:
        faults.append(Fault("refused", f"It reads {ML} up to {runtime.ml}.", feature=f"{ML} {ml}"))
    plan = planned(document, Target(runtime=runtime), Settings())
    unchanged_plan = plan.as_it_is or (plan if plan.target.opset == opset else None)
    faults += [Fault("refused", change, feature=_WHAT_WAS_DONE.split(change)[0]) for change in plan.fitted]
    faults += [] if unchanged_plan is None else _faults(document, unchanged_plan, runtime)
    if all(fault.kind in _TOLERABLE for fault in faults):
        return OnVersion(runtime.version, "runs" if covered.by(runtime) else "nothing known against it", tuple(faults))
    left = tuple(dict.fromkeys(map(str, plan.refusals)))
    return OnVersion(runtime.version, "does not run" if left else "runs after --for", tuple(faults), left)


_MOST_NAMED = 3
"""A fact about more operators of a model than this is reported for the whole model."""


def _faults(document: Document, plan: Plan, runtime: Runtime) -> list[Fault]:
    """The problems in a plan: rewritten, refused and unmended nodes, grouped by sentence."""
    by_sentence = {fact.sentence: fact for fact in runtime.facts}
    places: dict[str, list[tuple[str, str]]] = {}
    for site in plan.sites:
        if site.because:
            places.setdefault(site.because, []).append((site.op_type, site.node))
    for refusal in plan.refusals:
        says = next((sentence for sentence in by_sentence if sentence in refusal.reason), refusal.reason)
        places.setdefault(says, []).append((refusal.operator, refusal.node))
    for problem in plan.unmended:
        says = next((sentence for sentence in by_sentence if sentence in problem), "")
        if not says:
            continue
        fact = by_sentence[says]
        operator_name = problem.partition(f": {says}")[0].rpartition(": ")[2] if fact.outcome == "elsewhere" else ""
        if operator_name and operator_name not in document.operators:
            continue  # it is about the form that replaces a node
        operators = [operator_name] if operator_name else sorted(filter(fact.is_about, document.operators))
        places.setdefault(says, []).extend((operator, "") for operator in operators if len(operators) <= _MOST_NAMED)
    return [_fault(says, nodes, by_sentence.get(says)) for says, nodes in places.items()]


def _fault(says: str, places: list[tuple[str, str]], fact: Fact | None) -> Fault:
    operators = tuple(sorted({operator for operator, _ in places if operator}))
    nodes = [node for _, node in places if node]
    kind: Is = "refused" if fact is None else fact.outcome
    feature = "" if operators else "model"
    sentence = says if says.endswith(".") else f"{says}."
    return Fault(kind, sentence, operators, feature, len(nodes), nodes[0] if nodes else "")
