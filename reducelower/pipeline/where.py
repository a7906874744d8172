"""Where a model runs: on every runtime that is known, by version, as it is and after it was fitted to it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from onnx import ModelProto

from reducelower.api import planned
from reducelower.legalization.run_versions import ML, ml_imports
from reducelower.model.document import Document
from reducelower.model.graph import HOLDING_GRAPHS, all_nodes
from reducelower.model.schemas import DEFAULT_DOMAINS, opset_of
from reducelower.options import Settings, Target
from reducelower.plan import Plan
from reducelower.runtimes import Fact, Is, Runtime, load_runtime, shipped_names, shipped_versions

__all__ = ["Fault", "OnRuntime", "OnVersion", "Word", "where"]

Word = Literal["runs", "nothing known against it", "runs after --for", "does not run"]
"""What is known of a model on a version of a runtime. It runs where every operator was measured and no fact is true."""

_AS_IT_IS: frozenset[Word] = frozenset({"runs", "nothing known against it"})

_WHAT_WAS_DONE = re.compile(r" (?:was|were) ")
"""Comes after the feature in a sentence about what was done to the model as a whole."""

_TOLERABLE = frozenset({"overflows", "elsewhere", "misshapen"})
"""Outcomes of what runs all the same."""


@dataclass(frozen=True)
class Fault:
    """Something that is known against a model on a runtime.

    Attributes:
        kind: how it fails; see `reducelower.runtimes.Is`.
        says: a sentence.
        operators: the operators that it happens to; none if the model as a whole is meant.
        feature: what the model as a whole has, such as ``opset 20``; empty where operators are meant.
        nodes: how many nodes it happens to, and the first of them.
        first: the first of them.
    """

    kind: Is
    says: str
    operators: tuple[str, ...] = ()
    feature: str = ""
    nodes: int = 0
    first: str = ""


@dataclass(frozen=True)
class OnVersion:
    """What is known of a model on one version of a runtime.

    Attributes:
        version: the version; empty where the facts are about none in particular.
        word: whether it runs.
        faults: what is known against it as it is.
        left: why it does not run after ``--for``, in sentences.
        note: a sentence where the facts are those of other versions.
    """

    version: str
    word: Word
    faults: tuple[Fault, ...] = ()
    left: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class OnRuntime:
    """What is known of a model on a runtime.

    Attributes:
        name: the name of the target.
        newest: on its newest version, or on the one that was asked for.
        words: by version, the oldest first.
        is_documented: whether nobody measured what is known against it there, or anything of it.
        oldest_as_it_is: the oldest version that runs it as it is, as far as is known; empty if none does.
        oldest_after: the oldest that runs it after ``--for``, or as it is.
    """

    name: str
    newest: OnVersion
    words: Mapping[str, Word] = field(default_factory=dict)
    is_documented: bool = False
    oldest_as_it_is: str = ""
    oldest_after: str = ""


def where(model: Document, names: Iterable[str] | None = None) -> tuple[OnRuntime, ...]:
    """What is known of a model on runtimes, by default on every shipped one in all versions.

    Args:
        model: a document for trials.
        names: targets, each with all its versions, or ``NAME@VERSION`` for one.
    """
    covered = _Covered.of(model.message)
    return tuple(_on_runtime(model, covered, name) for name in (shipped_names() if names is None else names))


@dataclass(frozen=True)
class _Covered:
    """Which models the measurements of runtimes cover: those of plain nodes, and on most runtimes of known sizes."""

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
        """Whether what was measured on a runtime says something of the model."""
        return runtime.measures_operators and self.plain and (self.sized or runtime.name.startswith("onnxruntime"))


def _on_runtime(model: Document, covered: _Covered, name: str) -> OnRuntime:
    runtime = load_runtime(name)
    versions = shipped_versions(name) if name in shipped_names() else (runtime.version,)
    known: dict[object, OnVersion] = {}  # many versions have the same facts

    def on(each: Runtime) -> OnVersion:
        key = (each.facts, each.reads, each.prefer, each.ir_version, each.ml)
        known[key] = known.get(key) or _on_version(model, covered, each)
        return known[key]

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
    """Whether nobody measured what is known against a model there, or anything of a runtime."""
    documented = {fact.told for fact in runtime.facts if fact.evidence.documented}
    said = {fault.says for fault in faults}
    is_measured = any(fact.evidence.measured for fact in runtime.facts)
    return bool(documented) and (not is_measured or (bool(said) and said <= documented))


def _on_version(document: Document, covered: _Covered, runtime: Runtime) -> OnVersion:
    model = document.message
    opset = opset_of(model)
    faults: list[Fault] = []
    if opset not in runtime.reads:
        faults.append(Fault("refused", f"It reads opsets {runtime.reads}.", feature=f"opset {opset}"))
    if runtime.ir_version is not None and model.ir_version > runtime.ir_version:
        says = f"It reads IR versions up to {runtime.ir_version}."
        faults.append(Fault("refused", says, feature=f"IR version {model.ir_version}"))
    ml = max((entry.version for entry in ml_imports(model)), default=0)
    if runtime.ml is not None and ml > runtime.ml:
        faults.append(Fault("refused", f"It reads {ML} up to {runtime.ml}.", feature=f"{ML} {ml}"))
    plan = planned(document, Target(runtime=runtime), Settings())
    own = plan.as_it_is or (plan if plan.target.opset == opset else None)
    faults += [Fault("refused", said, feature=_WHAT_WAS_DONE.split(said)[0]) for said in plan.fitted]
    faults += [] if own is None else _faults(document, own, runtime)
    if all(fault.kind in _TOLERABLE for fault in faults):
        return OnVersion(runtime.version, "runs" if covered.by(runtime) else "nothing known against it", tuple(faults))
    left = tuple(dict.fromkeys(map(str, plan.refusals)))
    return OnVersion(runtime.version, "does not run" if left else "runs after --for", tuple(faults), left)


_MOST_NAMED = 3
"""A fact about more operators of a model is told of the model."""


def _faults(document: Document, plan: Plan, runtime: Runtime) -> list[Fault]:
    """What would have to be rewritten or is refused, by its sentence, and what stays."""
    by_sentence = {fact.told: fact for fact in runtime.facts}
    places: dict[str, list[tuple[str, str]]] = {}
    for site in plan.sites:
        if site.because:
            places.setdefault(site.because, []).append((site.op_type, site.node))
    for refusal in plan.refusals:
        says = next((told for told in by_sentence if told in refusal.reason), refusal.reason)
        places.setdefault(says, []).append((refusal.operator, refusal.node))
    for said in plan.unmended:
        says = next((told for told in by_sentence if told in said), "")
        if not says:
            continue
        fact = by_sentence[says]
        named = said.partition(f": {says}")[0].rpartition(": ")[2] if fact.outcome == "elsewhere" else ""
        if named and named not in document.operators:
            continue  # it is said of the form that takes a node's place
        operators = [named] if named else sorted(filter(fact.is_about, document.operators))
        places.setdefault(says, []).extend((operator, "") for operator in operators if len(operators) <= _MOST_NAMED)
    return [_fault(says, found, by_sentence.get(says)) for says, found in places.items()]


def _fault(says: str, found: list[tuple[str, str]], fact: Fact | None) -> Fault:
    operators = tuple(sorted({operator for operator, _ in found if operator}))
    nodes = [node for _, node in found if node]
    kind: Is = "refused" if fact is None else fact.outcome
    feature = "" if operators else "model"
    told = says if says.endswith(".") else f"{says}."
    return Fault(kind, told, operators, feature, len(nodes), nodes[0] if nodes else "")
