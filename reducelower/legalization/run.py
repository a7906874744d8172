"""One run over one model: from model, target and settings to a plan and a legal model."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from onnx import FunctionProto, ModelProto, NodeProto, OperatorSetIdProto

from reducelower.errors import Refusal
from reducelower.files import DataFolder
from reducelower.legalization.checking import new_objection
from reducelower.legalization.draft import Draft
from reducelower.legalization.graph_pass import GraphPass
from reducelower.legalization.ir_version import (
    ir_version_of_opset,
    ir_version_to_read,
    needed_ir_version,
    release_initializers,
)
from reducelower.legalization.memo import Memo
from reducelower.legalization.memo.memory import kept
from reducelower.legalization.zeros import assumes_none, notes_about_zeros
from reducelower.model.census import Stated, graph_field
from reducelower.model.document import Document
from reducelower.model.graph import UNLIKE_BRANCHES_SINCE, all_nodes
from reducelower.model.inference.declared import objection
from reducelower.model.names import Names, Searchable
from reducelower.model.rewrites import Step
from reducelower.model.schemas import (
    DEFAULT_DOMAINS,
    has_body,
    latest_opset,
    parse_element_type,
    schema,
    schema_in_force,
    versions,
)
from reducelower.model.skeleton import skeleton
from reducelower.model.sole_type import sole_element_type
from reducelower.model.validate import find_call_defect
from reducelower.model.written_for import has_form
from reducelower.options import IrVersion, Settings, Target
from reducelower.plan import Plan
from reducelower.rulebook.rules import SHIPPED, Rules
from reducelower.scope.ground import Ground
from reducelower.scope.values import Values
from reducelower.types import infer_strictly, inference_of

__all__ = ["folder_of", "ground_of", "refuse_declarations", "run"]

_CASTS_TELL_TYPES = 6

_ML = "ai.onnx.ml"


def run(
    draft: Draft,
    source: Document,
    target: Target,
    settings: Settings,
    *,
    report: bool = True,
    lenient: bool = False,
    repairs: bool = False,
) -> Plan:
    """Legalize a draft; `source` is the same model before any edit.

    If `lenient`, shape inference may object to the model, and the types found until then are used. If `repairs`, only
    nodes in the form of another opset version are moved, to that of the import. The plan lists sites only if `report`:
    on a large model, listing them takes longer than everything else.
    """
    model = draft.model
    old_ir = model.ir_version
    imports, versions_imported = _imports(model, source, target)
    opset, problem = _source_opset(versions_imported)
    goal = _goal(target, opset)
    plan = Plan(opset, goal, ir_version=(old_ir, old_ir))
    if problem := problem or _refuse_beforehand(model, source, opset, goal, settings):
        return replace(plan, refusals=(problem,))
    assert goal.opset is not None
    sole_type = partial(sole_element_type, model.graph, draft.census, opset)
    rules = Rules(settings.rules, goal.without_types)
    kind = None if repairs else _kind_of_run(goal, settings)
    with kept(kind) as memory:
        ground = ground_of(
            model,
            source,
            goal,
            settings,
            sole_type,
            memory.values,
            draft.searchable(),
            draft.stated,
            lenient=lenient,
        )
        memo = Memo(memory, remembers=settings.memo)
        graph_pass = GraphPass(
            draft, goal, ground, rules, memo, checks=settings.validate, records=report, repairs=repairs
        )
        try:
            graph_pass.run(opset)
            unmended = graph_pass.unmended
            is_conditional = assumes_none(graph_pass.edits)
            about_zeros = [*notes_about_zeros(graph_pass.edits, goal, is_asked=target.assume_nonempty)]
        finally:
            ground.clear_caches()
    notes = (
        *filter(None, [goal.runtime.note if goal.runtime is not None else ""]),
        *(f"{name!r} is a default that callers may override; it was taken for constant" for name in ground.frozen),
        *(f"{says} No equivalent form avoids that there." for says in unmended),
        *about_zeros,
    )
    plan = replace(plan, notes=notes, assumes_nonempty=is_conditional)
    if graph_pass.refusals:
        return replace(plan, refusals=tuple(graph_pass.refusals))
    steps = (Step(source, graph_pass.applied()),) if report else ()
    sites = graph_pass.splice(report=report)
    for entry in imports:
        entry.version = goal.opset
    operators = graph_pass.operators_met if settings.validate else ()
    doubts = memo.doubts if settings.validate else ()
    problem = _refuse_untyped_functions(draft, source) if goal.opset < _CASTS_TELL_TYPES else None
    problem = problem or _misfit(draft, source, opset, goal.opset, doubts, operators, lenient=lenient)
    if not problem:
        model.ir_version = _new_ir(draft, settings.ir_version, opset, goal.opset)
        problem = _fit_ir_version(draft, goal) or _fit_ml_version(draft, goal)
    if problem:
        return replace(plan, refusals=(problem,))
    released = release_initializers(model, old_ir)
    ir_version = old_ir, model.ir_version
    return replace(
        plan,
        notes=(*plan.notes, *filter(None, [released])),
        sites=tuple(sites),
        carried=graph_pass.nodes - len(sites),
        ir_version=ir_version,
        unmended=unmended,
        steps=steps,
    )


def _imports(model: ModelProto, source: Document, target: Target) -> tuple[list[OperatorSetIdProto], list[int]]:
    """The default-domain imports to change to the target's version, and the opset versions of the source."""
    imports = [entry for entry in model.opset_import if entry.domain in DEFAULT_DOMAINS]
    domains = {node.domain for node in all_nodes(source.message)} if not imports else set()
    if not domains or not domains.isdisjoint(DEFAULT_DOMAINS):
        return imports, [entry.version for entry in imports]
    # No node is of the default domain, and it is not imported: import the target's version.
    added = [] if target.opset is None else [model.opset_import.add(version=target.opset)]
    return added, [target.opset or latest_opset()]


def _refuse_beforehand(
    model: ModelProto, source: Document, opset: int, goal: Target, settings: Settings
) -> Refusal | None:
    """A refusal of the model as a whole or of the user's declarations, if there is one."""
    if not _holds_graph(source):
        return Refusal("graph", "", "", "the model holds no graph", "export it again")
    if model.functions and (wrong := find_call_defect(source.message)):
        return Refusal("graph", "", "", wrong, "inline the functions first")
    return _refuse_training(model, opset, goal) or refuse_declarations(source, settings)


def _holds_graph(source: Document) -> bool:
    # For most models the bytes answer, without parsing.
    return (source.has_data and graph_field(source.data) is not None) or source.message.HasField("graph")


def _misfit(
    draft: Draft,
    source: Document,
    opset: int,
    goal: int,
    doubts: Sequence[str],
    operators: Iterable[str],
    *,
    lenient: bool,
) -> Refusal | None:
    """The objection of strict inference to the whole model, if something in it may be the cause.

    That is a doubtful rewrite, an If branch, or an operator that inference does not know at the model's opset version.
    """
    in_doubt, hint = next(iter(doubts), ""), "state the types of what it reads and yields"
    if not in_doubt and goal < UNLIKE_BRANCHES_SINCE <= opset and draft.may_hold("If"):
        # With more constants than before, inference may find different shapes in the branches of an If.
        in_doubt, hint = "If", f"opset {UNLIKE_BRANCHES_SINCE} is the oldest whose branches may give different shapes"
    if not in_doubt:
        in_doubt = next((op_type for op_type in sorted(operators) if _is_inferred_only_at(goal, op_type, opset)), "")
        hint = f"correct the types that the model states; at opset {opset} inference does not know {in_doubt}"
    if not in_doubt or (lenient and source.objection):
        return None
    if not (wrong := new_objection(source, draft.document())):
        return None
    return Refusal("graph", "", in_doubt, f"what takes the place of a node does not fit the model: {wrong}", hint)


def _is_inferred_only_at(goal: int, op_type: str, opset: int) -> bool:
    """Whether inference knows an operator at the target's opset version and not at the model's.

    Inference knows an operator with a function body, such as LessOrEqual below opset 16, by its body.
    """
    before, after = schema(op_type, opset), schema(op_type, goal)
    if before is None or after is None:
        return False
    is_known = before.has_type_and_shape_inference_function or has_body(before)
    return bool(after.has_type_and_shape_inference_function and not is_known)


def _kind_of_run(target: Target, settings: Settings) -> Hashable:
    """All that determines results apart from the questions about nodes; None if other runs cannot reuse them.

    Declarations and rule books of the user belong to one run only.
    """
    if not settings.memo or settings.element_types or settings.ranks:
        return None
    is_shipped = isinstance(settings.rules, str) and settings.rules in SHIPPED
    return (target, settings.rules, settings.validate) if is_shipped else None


def _refuse_training(model: ModelProto, opset: int, goal: Target) -> Refusal | None:
    """Refuse training graphs: they change initializers, so nothing in them is constant."""
    graphs = [graph for info in model.training_info for graph in (info.initialization, info.algorithm)]
    if any(graph.node for graph in graphs) and (goal.opset != opset or goal.without or goal.runtime is not None):
        reason = "the model holds graphs for training (training_info), which are not converted"
        return Refusal("training_info", "", "", reason, "remove them: del model.training_info[:]")
    return None


def refuse_declarations(source: Document, settings: Settings) -> Refusal | None:
    """Refuse declared types and ranks of names that are not in the model, or that contradict it."""
    if not settings.element_types and not settings.ranks:
        return None
    reason = objection(
        infer_strictly(skeleton(source.message))[0], _parsed(settings.element_types), settings.ranks or {}
    )
    hint = "declare only what the model does not state, by the names of its values"
    return Refusal("graph", "", "", reason, hint) if reason else None


def _parsed(element_types: Mapping[str, str] | None) -> dict[str, int]:
    return {name: parse_element_type(given) for name, given in (element_types or {}).items()}


def _refuse_untyped_functions(draft: Draft, source: Document) -> Refusal | None:
    """Refuse functions in which inference misses a type: old Cast names it as text, and a function states none."""
    if not draft.model.functions or not (wrong := new_objection(source, draft.document())):
        return None
    reason = f"inference does not read the Cast of opset {_CASTS_TELL_TYPES - 1} in functions: {wrong}"
    return Refusal("functions", "", "", reason, "inline the functions first")


def folder_of(settings: Settings) -> DataFolder | None:
    """Where external data may lie; None if that is not known."""
    return None if settings.base_dir is None else DataFolder.of(settings.base_dir)


def ground_of(
    model: ModelProto,
    source: Document,
    target: Target,
    settings: Settings,
    sole_type: Callable[[], int | None] = lambda: None,
    values: Values | None = None,
    searchable: Searchable | None = None,
    stated: Stated | None = None,
    *,
    lenient: bool = False,
) -> Ground:
    """The shared state of a run's scopes; arguments as for `run` and `Ground`."""
    assert target.opset is not None
    element_types = _parsed(settings.element_types)
    ranks = settings.ranks or {}
    return Ground(
        Names(lambda: source.message, searchable),
        inference_of(
            source, element_types, ranks, sole_type, freezes_defaults=settings.freeze_defaults, lenient=lenient
        ),
        opset=target.opset,
        element_types=element_types,
        ranks=ranks,
        data_folder=folder_of(settings),
        freeze_defaults=settings.freeze_defaults,
        overridable=model.ir_version >= 4,
        initializers_stand_alone=_new_ir_at_most(settings.ir_version, model.ir_version) >= 4,
        assumes_nonempty=target.assume_nonempty,
        values=Values() if values is None else values,
        stated=stated,
        weight=source.weight,
    )


def _source_opset(imported: list[int]) -> tuple[int, Refusal | None]:
    """The default-domain opset version, and a refusal if it is not valid."""
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
    assumes = target.assume_nonempty or (target.runtime is not None and target.runtime.refuses_added("If"))
    return replace(target, opset=opset, assume_nonempty=assumes)


def _fit_ir_version(draft: Draft, target: Target) -> Refusal | None:
    """Lower the IR version to the newest that the runtime reads; refuse contents that need a newer one."""
    newest = None if target.runtime is None else target.runtime.ir_version
    if newest is None or draft.model.ir_version <= newest:
        return None
    needed = ir_version_to_read(draft.document().message)
    if needed <= newest:
        draft.model.ir_version = newest
        return None
    reason = f"{target.runtime} reads IR versions up to {newest}, and the model uses what came with IR version {needed}"
    return Refusal("graph", "", "", reason, "choose a newer version of the runtime")


def _fit_ml_version(draft: Draft, target: Target) -> Refusal | None:
    """Lower ai.onnx.ml imports to the newest version that the runtime reads, if no node uses what came later.

    Exporters import the newest version they know, whichever of its operators they use, if any.
    """
    newest = None if target.runtime is None else target.runtime.ml
    holders: list[ModelProto | FunctionProto] = [draft.model, *draft.model.functions]
    imports = [entry for holder in holders for entry in holder.opset_import if entry.domain == _ML]
    if newest is None or all(entry.version <= newest for entry in imports):
        return None
    used = max(entry.version for entry in imports)
    for node in all_nodes(draft.document().message):
        if node.domain == _ML and not _is_of_ml_version(node, used, newest):
            reason = f"{target.runtime} reads {_ML} up to version {newest}, and this is of version {used}"
            return Refusal("graph", node.name, node.op_type, reason, "choose a newer version of the runtime")
    for entry in imports:
        entry.version = min(entry.version, newest)
    return None


def _is_of_ml_version(node: NodeProto, used: int, newest: int) -> bool:
    """Whether an ai.onnx.ml node means the same in an older version: the operator is unchanged, or the node has nothing
    that came later. No later version of an operator means something else by what an older one has."""
    own, older = (schema_in_force(node.op_type, version, _ML) for version in (used, newest))
    if older is None or own is None:
        return own is older
    return older.since_version == own.since_version or (not older.deprecated and has_form(node, older))


def _new_ir_at_most(asked: IrVersion, old: int) -> int:
    """The newest IR version that the output may have."""
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
    # If the opset version does not change, there is no sign that older readers are meant.
    least = old if goal_opset == source_opset else usual
    if least < old or old < 4:
        needed = needed_ir_version(draft.model, draft.nodes, draft.census, draft.stated)
        return max(least, min(needed, max(old, 4)))
    return old
