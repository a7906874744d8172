"""One run over one model: from a model, a target and settings to a plan and a legal model."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from onnx import ModelProto, shape_inference

from reducelower.errors import Refusal
from reducelower.legalization.checking import contradicts_inference
from reducelower.legalization.draft import Draft
from reducelower.legalization.driver import Legalizer
from reducelower.legalization.ir_version import ir_version_of_opset, ir_version_to_read, needed_ir_version
from reducelower.legalization.memo import Memo, Memory
from reducelower.legalization.memo.memory import kept
from reducelower.model.declared import undefined
from reducelower.model.document import Document
from reducelower.model.graph import HOLDING_GRAPHS, all_nodes, subgraphs
from reducelower.model.inference import ContradictionError, skeleton
from reducelower.model.names import Names
from reducelower.model.schemas import DEFAULT_DOMAINS, latest_opset, parse_element_type, schema, versions
from reducelower.model.sole_type import sole_element_type
from reducelower.model.suggestions import did_you_mean
from reducelower.model.validate import what_is_wrong_with_calls
from reducelower.options import IrVersion, Settings, Target
from reducelower.plan import Plan
from reducelower.rulebook.rules import SHIPPED, Rules
from reducelower.scope.ground import Ground

if TYPE_CHECKING:
    from reducelower.runtimes import Runtime
    from reducelower.scope.values import Values

__all__ = ["attempt", "attempt_in_place", "refusing", "source_opset"]

_BRANCHES_MAY_DIFFER = 11
_CASTS_TELL_TYPES = 6
_LOOPS = ("Loop", "Scan")


def attempt(source: Document, target: Target, settings: Settings, *, report: bool) -> tuple[Draft, Plan]:
    """Make a draft of a model legal; where the plan has refusals, the draft is of no use.

    Types that the model states, and that are seen to contradict what its nodes yield, are dropped, and integers too
    narrow for the target are held in wider types, both of which is noted.

    Raises:
        ContradictionError: dropping them does not help.
        ValueError: the target makes no sense.
    """
    draft, plan = _without_stale(source, target, settings, report=report)
    if plan.refusals and _has_too_narrow(source.message, plan, settings):
        from reducelower.legalization.widening import hold_in_wider, told_of_source

        wide = ModelProto()
        wide.CopyFrom(source.message)
        held = hold_in_wider(wide, plan.target.opset or 0, _folder(settings))
        draft, plan = attempt(Document.of_message(wide), target, settings, report=report)
        return draft, told_of_source(plan, held, source.message, wide)
    if _contradicts_in_loops(source, draft, plan):
        from reducelower.legalization.repair import drop_shapes_in_loops

        open_model = ModelProto()
        open_model.CopyFrom(source.message)
        done = tuple(drop_shapes_in_loops(open_model))
        draft, plan = _without_stale(Document.of_message(open_model), target, settings, report=report)
        return draft, replace(plan, notes=(*done, *plan.notes))
    return draft, plan


def _contradicts_in_loops(source: Document, draft: Draft, plan: Plan) -> bool:
    """Whether what is stated inside of loops contradicts what inference finds at the new opset version only."""
    if plan.refusals or plan.source_opset == plan.target.opset or not _may_loop(draft):
        return False
    return contradicts_inference(source.bare, draft.document().message) != ""


def _may_loop(draft: Draft) -> bool:
    """Whether there may be a Loop or Scan anywhere; most models are cleared by the operators of their main graph."""
    census = draft.census
    if census is not None and census.is_even and HOLDING_GRAPHS.isdisjoint(census.operators):
        return any(node.op_type in _LOOPS for node in all_nodes(draft.model))  # which has its functions alone
    return any(map(draft.may_hold, _LOOPS))


def _without_stale(source: Document, target: Target, settings: Settings, *, report: bool) -> tuple[Draft, Plan]:
    try:
        return _attempt(source, target, settings, report=report)
    except ContradictionError:
        from reducelower.legalization.repair import drop_stale, inferred_afresh, mends_more

        found = inferred_afresh(source.message)
        mended = drop_stale(source.message, found)
        if not mended.done:
            if mends_more(source.message, found):
                raise
            # What inference objects to is not what is stated; the model is taken as it is.
            return _attempt(source, target, settings, report=report, lenient=True)
        draft, plan = _attempt(Document.of_message(mended.model), target, settings, report=report)
        return draft, replace(plan, notes=(*mended.done, *plan.notes))


def _attempt(
    source: Document, target: Target, settings: Settings, *, report: bool, lenient: bool = False
) -> tuple[Draft, Plan]:
    draft = Draft.of_document(source)
    plan = _run(draft, source, target, settings, report=report, lenient=lenient)
    if plan.refusals and _in_functions(plan):
        special = ModelProto()
        special.CopyFrom(source.message)
        _specialize(special, plan, settings)
        special_source = Document.of_message(special)
        second = Draft.of_document(special_source)
        again = _run(second, special_source, target, settings, report=report, is_last_attempt=True, lenient=lenient)
        if not again.refusals:
            return second, again
    return draft, plan


def attempt_in_place(model: ModelProto, target: Target, settings: Settings, *, report: bool) -> Plan:
    """Make a model itself legal, or leave it as it was where the plan has refusals.

    Raises:
        ValueError: the target makes no sense.
    """
    # Refusals are found on copies that carry no weights.
    bare = skeleton(model)
    source = Document.of_message(bare)
    plan = _run(Draft.of_document(source), source, target, settings)
    if plan.refusals and _has_too_narrow(model, plan, settings):
        return _held_in_place(model, plan.target, settings, report=report)
    is_last_attempt = bool(_in_functions(plan))
    if is_last_attempt:
        first = plan
        _specialize(bare, plan, settings)
        source = Document.of_message(bare)
        plan = _run(Draft.of_document(source), source, target, settings, is_last_attempt=True)
        if plan.refusals:
            return first
        _specialize(model, first, settings)
    if plan.refusals:
        return plan
    return _run(Draft(model), source, target, settings, report=report, is_last_attempt=is_last_attempt)


def _held_in_place(model: ModelProto, target: Target, settings: Settings, *, report: bool) -> Plan:
    """The same with narrow integers held in wider types, unless that leaves something to be refused."""
    from reducelower.legalization.widening import hold_in_wider, told_of_source

    assert target.opset is not None
    before, wide = skeleton(model), skeleton(model)
    hold_in_wider(wide, target.opset, _folder(settings))
    trial = skeleton(wide)
    if (refused := attempt_in_place(trial, target, settings, report=False)).refusals:
        return refused
    held = hold_in_wider(model, target.opset, _folder(settings))
    return told_of_source(attempt_in_place(model, target, settings, report=report), held, before, wide)


def _has_too_narrow(model: ModelProto, plan: Plan, settings: Settings) -> bool:
    """Whether what was refused may be legal once narrow integers are held in wider types, and they can be."""
    from reducelower.legalization.widening import can_be_held

    return plan.target.opset is not None and can_be_held(model, plan.target.opset, _folder(settings))


def _folder(settings: Settings) -> Path | None:
    return None if settings.base_dir is None else Path(settings.base_dir)


def _in_functions(plan: Plan) -> set[str]:
    """Graph paths of the model-local functions in which something was refused."""
    return {
        "/".join(refusal.graph.split("/")[:2])
        for refusal in plan.refusals
        if refusal.operator and refusal.graph.startswith("functions/")
    }


def _specialize(model: ModelProto, plan: Plan, settings: Settings) -> None:
    """Give functions in which something was refused a copy for each way they are called."""
    from reducelower.legalization.monomorphize import specialize

    specialize(model, _in_functions(plan), _ground(model, Document.of_message(model), plan.target, settings))


def _run(
    draft: Draft,
    source: Document,
    target: Target,
    settings: Settings,
    *,
    report: bool = True,
    is_last_attempt: bool = False,
    lenient: bool = False,
) -> Plan:
    """Make a draft legal; `source` is the same model as it was.

    Shape inference may object to the model where `lenient`; what it finds until then is taken.
    The plan lists sites only where a report is wanted: on a large model listing them takes longer than the rest.
    """
    model = draft.model
    imports = [entry for entry in model.opset_import if entry.domain in DEFAULT_DOMAINS]
    versions_imported = [entry.version for entry in imports]
    domains = {node.domain for node in all_nodes(source.bare)} if not imports else set()
    if domains and domains.isdisjoint(DEFAULT_DOMAINS):
        # Its nodes are for any opset version, and it says so of the target's.
        versions_imported = [target.opset or latest_opset()]
        imports = [] if target.opset is None else [model.opset_import.add(version=target.opset)]
    opset, problem = _source_opset(versions_imported)
    goal = _goal(target, opset)
    old_ir = model.ir_version
    if not problem and model.functions and (wrong := what_is_wrong_with_calls(source.bare)):
        problem = Refusal("graph", "", "", wrong, "inline the functions first")
    problem = problem or _left_behind(model, opset, goal) or _declared_of_nothing(source, settings)
    if problem:
        return Plan(opset, goal, refusals=(problem,), ir_version=(old_ir, old_ir))
    assert goal.opset is not None
    sole_type = partial(_sole_type, draft, opset)
    rules = Rules(settings.rules, goal.without_types)
    with kept(_kind_of_run(goal, settings, is_last_attempt=is_last_attempt)) as memory:
        ground = _ground(
            model,
            source,
            goal,
            settings,
            sole_type,
            memory.values,
            draft.searchable(),
            is_last_attempt=is_last_attempt,
            lenient=lenient,
        )
        memo = Memo(memory, remembers=settings.memo)
        legalizer = Legalizer(draft, goal, ground, rules, memo, checks=settings.validate)
        try:
            legalizer.run(opset)
        finally:
            ground.let_go()
    refusals = tuple(legalizer.refusals)
    unmended = legalizer.unmended
    notes = (
        *(f"{name!r} is a default that callers may override; it was taken for constant" for name in ground.frozen),
        *(f"{says} No equivalent form avoids that there." for says in unmended),
    )
    if refusals:
        return Plan(opset, goal, refusals=refusals, ir_version=(old_ir, old_ir), notes=notes)
    sites = legalizer.splice(report=report)
    for entry in imports:
        entry.version = goal.opset
    in_doubt = memo.doubts[0] if memo.doubts and settings.validate else ""
    hint = "state the types of what it reads and yields"
    if not in_doubt and goal.opset < _BRANCHES_MAY_DIFFER <= opset and draft.may_hold("If"):
        # Branches may turn out to give different shapes now that more is constant than before.
        in_doubt, hint = "If", f"opset {_BRANCHES_MAY_DIFFER} is the oldest whose branches may give different shapes"
    if in_doubt and (wrong := contradicts_inference(source.bare, draft.document().message)):
        reason = f"what takes the place of a node does not fit the model: {wrong}"
        problem = Refusal("graph", "", in_doubt, reason, hint)
        return Plan(opset, goal, refusals=(problem,), ir_version=(old_ir, old_ir), notes=notes)
    if goal.opset < _CASTS_TELL_TYPES <= opset and (problem := _untyped_function(draft)):
        return Plan(opset, goal, refusals=(problem,), ir_version=(old_ir, old_ir), notes=notes)
    model.ir_version = _new_ir(draft, settings.ir_version, opset, goal.opset)
    if problem := _too_new_an_ir(draft, goal):
        return Plan(opset, goal, refusals=(problem,), ir_version=(old_ir, old_ir), notes=notes)
    carried = legalizer.nodes - len(sites)
    return Plan(opset, goal, tuple(sites), (), carried, (old_ir, model.ir_version), notes, unmended)


def _kind_of_run(target: Target, settings: Settings, *, is_last_attempt: bool) -> Hashable:
    """All that decides what becomes of nodes, beside what is asked about them; None where other runs cannot use it.

    What the user says of values, a rule book of the user's own, and what is told of a runtime belong to one run.
    """
    if not settings.memo or target.runtime is not None or settings.element_types or settings.ranks:
        return None
    is_shipped = isinstance(settings.rules, str) and settings.rules in SHIPPED
    return (target, settings.rules, settings.validate, is_last_attempt) if is_shipped else None


def source_opset(model: ModelProto) -> int:
    """The opset version of the default domain that a model imports; 0 where it imports none."""
    return next((entry.version for entry in model.opset_import if entry.domain in DEFAULT_DOMAINS), 0)


def _left_behind(model: ModelProto, opset: int, goal: Target) -> Refusal | None:
    """The graphs of training, which change the initializers, so that nothing in them counts as constant."""
    graphs = [graph for info in model.training_info for graph in (info.initialization, info.algorithm)]
    if any(graph.node for graph in graphs) and (goal.opset != opset or goal.without or goal.runtime is not None):
        reason = "the model holds graphs for training (training_info), which are not converted"
        return Refusal("training_info", "", "", reason, "remove them: del model.training_info[:]")
    return None


def refusing(
    source: Document, target: Target, settings: Settings, refusals: Sequence[Refusal]
) -> Callable[[int], bool]:
    """Whether nodes that were refused, one for each operator, are so at other opset versions; answers in a moment."""
    wanted = {refusal.operator: refusal.node for refusal in refusals if refusal.graph == "graph" and refusal.operator}
    numbered = enumerate(source.bare.graph.node)
    positions = [
        index for index, node in numbered if wanted.get(node.op_type) in (node.name, f"{node.op_type}#{index}")
    ]
    positions = [index for index in positions if not any(True for _ in subgraphs(source.bare.graph.node[index]))]
    draft, opset, rules = Draft.of_document(source), source_opset(source.bare), Rules(settings.rules)
    first = _ground(draft.model, source, replace(target, opset=opset), settings)
    refused_at: list[tuple[int, frozenset[str]]] = []

    def refuses(goal: int) -> bool:
        if any(_are_alike(goal, other, met, target.runtime) for other, met in refused_at):
            return True
        at_goal = replace(target, opset=goal)
        ground = copy(first)
        ground.opset = goal
        legalizer = Legalizer(draft, at_goal, ground, rules, Memo(Memory()))
        try:
            found = legalizer.refuses(opset, positions)
        except ContradictionError:  # a whole attempt gets around it
            return False
        if found and target.runtime is not None:
            refused_at.append((goal, legalizer.operators_met))
        return found

    return refuses


def _are_alike(opset: int, other: int, operators: Iterable[str], runtime: Runtime | None) -> bool:
    """Whether all that was looked at in vain at one opset version is the same at another one."""
    return runtime is not None and all(
        _since(name, opset) == _since(name, other)
        and runtime.facts_about(name, opset) == runtime.facts_about(name, other)
        for name in operators
    )


def _since(name: str, opset: int) -> int | None:
    found = schema(name, opset)
    return None if found is None else found.since_version


def _declared_of_nothing(source: Document, settings: Settings) -> Refusal | None:
    """Types and ranks declared of what is no value of the model."""
    for what, declared in (("element type", settings.element_types), ("rank", settings.ranks)):
        unknown, known = undefined(source.bare, declared) if declared else ([], set())
        if unknown:
            reason = f"no value of the model is named {unknown[0]!r}, whose {what} is declared"
            return Refusal("graph", "", "", f"{reason}{did_you_mean(unknown[0], known)}", "name a value of the model")
    return None


def _untyped_function(draft: Draft) -> Refusal | None:
    """Look for functions in which inference misses a type: Cast named it as text, and a function states none."""
    if not draft.model.functions:
        return None
    try:
        shape_inference.infer_shapes(skeleton(draft.document().message), check_type=True, strict_mode=True)
    except Exception as error:  # inference has several kinds of its own
        reason = f"inference does not read the Cast of opset {_CASTS_TELL_TYPES - 1} in functions: {error}"
        return Refusal("functions", "", "", " ".join(reason.split()), "inline the functions first")
    return None


def _sole_type(draft: Draft, opset: int) -> int | None:
    return None if draft.census is None else sole_element_type(draft.model.graph, draft.census, opset)


def _ground(
    model: ModelProto,
    source: Document,
    target: Target,
    settings: Settings,
    sole_type: Callable[[], int | None] = lambda: None,
    values: Values | None = None,
    searchable: bytes | None = None,
    *,
    is_last_attempt: bool = False,
    lenient: bool = False,
) -> Ground:
    assert target.opset is not None
    element_types = {name: parse_element_type(given) for name, given in (settings.element_types or {}).items()}
    ranks = settings.ranks or {}
    return Ground(
        Names(lambda: source.bare, searchable or source.searchable),
        source.inference(element_types, ranks, sole_type, lenient=lenient),
        opset=target.opset,
        element_types=element_types,
        ranks=ranks,
        base_dir=_folder(settings),
        freeze_defaults=settings.freeze_defaults,
        overridable=model.ir_version >= 4,
        initializers_stand_alone=_new_ir_at_most(settings.ir_version, model.ir_version) >= 4,
        is_last_attempt=is_last_attempt,
        values=values,
    )


def _source_opset(imported: list[int]) -> tuple[int, Refusal | None]:
    """The opset version of the default domain, and what is wrong with it if anything."""
    if not imported:
        reason = "it imports no opset of the default domain, so nothing says what its operators mean"
        return 0, Refusal("graph", "", "", reason, "set opset_import")
    opset = imported[0]
    different = sorted(set(imported))
    if len(different) > 1:
        reason = f"it imports the default domain more than once, at opsets {' and '.join(map(str, different[:9]))}"
        return opset, Refusal("graph", "", "", reason, "keep the one its nodes are written for")
    if not 1 <= opset <= latest_opset():
        reason = f"it imports opset {opset}, and the onnx installed knows opsets 1 to {latest_opset()}"
        return opset, Refusal("graph", "", "", reason, "install a newer onnx" if opset > 0 else "mend opset_import")
    return opset, None


def _goal(target: Target, source_opset: int) -> Target:
    """The target with its opset version filled in.

    Raises:
        ValueError: there is no such opset version, operator or element type.
    """
    opset = source_opset if target.opset is None else target.opset
    if target.opset is not None and not 1 <= opset <= latest_opset():
        raise ValueError(f"there is no opset {opset}; the onnx installed knows opsets 1 to {latest_opset()}")
    for name in target.without:
        if not versions(name):
            raise ValueError(f"there is no operator {name!r} in the default domain")
    for name in target.without_types:
        parse_element_type(name)
    return replace(target, opset=opset)


def _too_new_an_ir(draft: Draft, target: Target) -> Refusal | None:
    """Bring the IR version down to the newest that the runtime reads; what needs a newer one is refused."""
    newest = None if target.runtime is None else target.runtime.ir_version
    if newest is None or draft.model.ir_version <= newest:
        return None
    needed = ir_version_to_read(draft.document().message)
    if needed <= newest:
        draft.model.ir_version = newest
        return None
    reason = f"{target.runtime} reads IR versions up to {newest}, and the model uses what came with IR version {needed}"
    return Refusal("graph", "", "", reason, "choose a newer version of the runtime")


def _new_ir_at_most(asked: IrVersion, old: int) -> int:
    """The newest IR version the model may come out with."""
    if asked == "keep":
        return old
    return max(old, 4) if asked == "auto" else int(asked)


def _new_ir(draft: Draft, asked: IrVersion, source_opset: int, goal_opset: int) -> int:
    old = draft.model.ir_version
    if asked == "keep":
        return old
    if asked != "auto":
        return int(asked)
    usual = ir_version_of_opset(goal_opset)
    if usual > old:
        return usual
    # Of a model that stays at its opset version nothing tells that older readers are meant.
    least = old if goal_opset == source_opset else usual
    if least < old or old < 4:
        return max(least, min(needed_ir_version(draft.model, draft.nodes, draft.census), max(old, 4)))
    return old
