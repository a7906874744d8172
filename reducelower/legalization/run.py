"""One run over one model: from model, target and settings to a plan and a legal model."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from onnx import ModelProto

from reducelower.errors import Refusal, RuleError
from reducelower.legalization.edits import applied, notes_on_zeros, sites_of, splice
from reducelower.legalization.functions import called_function, functions_of, functions_refused
from reducelower.legalization.graph_pass import GraphPass
from reducelower.legalization.memo import memory_for
from reducelower.legalization.node_rewriter import NodeRewriter
from reducelower.legalization.versions import (
    default_imports,
    fit_ml_version,
    release_initializers,
    remove_imports,
    set_ir_version,
    with_opset,
)
from reducelower.legalization.whole.stale_sizes import reads_stale_sizes
from reducelower.lines import enumerated
from reducelower.model.document import Document, new_objection
from reducelower.model.graph import all_nodes
from reducelower.model.schemas import DEFAULT_DOMAINS, element_type_name, parse_element_type
from reducelower.model.skeleton import names_in
from reducelower.options import Settings, Target
from reducelower.plan import Plan
from reducelower.rewrites import Step
from reducelower.rulebook.rules import SHIPPED, load_book
from reducelower.scope.ground import Ground, Values
from reducelower.text import did_you_mean
from reducelower.types import Inference
from reducelower.types.known import Question

if TYPE_CHECKING:
    from reducelower.runtimes import Runtime

__all__ = ["ground_of", "refuse_declarations", "run", "told"]


def run(
    model: ModelProto,
    source: Document,
    target: Target,
    settings: Settings,
    *,
    report: bool = True,
    repairs: bool = False,
) -> Plan:
    """Legalize a model in place; `source` is the same model before any edit.

    If `repairs`, it only moves nodes in the form of another opset version to that of the import. The plan lists sites
    only if `report`, because listing them takes longer than everything else on a large model.
    """
    old_ir = model.ir_version
    imports, opset, problem = default_imports(model, source, target)
    goal = with_opset(target, opset)
    plan = Plan(opset, goal, ir_version=(old_ir, old_ir))
    if problem := problem or _refuse_beforehand(model, source, opset, goal, settings):
        return replace(plan, refusals=(problem,))
    assert goal.opset is not None
    rewriter = NodeRewriter(goal, load_book(settings.rules), source, opset, repairs=repairs)
    with memory_for(None if repairs else _kind_of_run(goal, settings)) as memory:
        ground = ground_of(source, goal.opset, settings, memory.values, assumes_nonempty=goal.assume_nonempty)
        graph_pass = GraphPass(ground, rewriter, opset, memory, settings)
        try:
            refusals = graph_pass.run(model)
            unmended = graph_pass.unmended
            is_stale = reads_stale_sizes(graph_pass.edits)
        finally:
            ground.clear_caches()
    edits = graph_pass.edits
    is_conditional, about_zeros = notes_on_zeros(edits, goal, is_asked=target.assume_nonempty)
    unmeasured = () if goal.runtime is None else _unmeasured(source, goal.runtime)
    plan = replace(plan, assumes_nonempty=is_conditional, unmeasured=unmeasured, is_stale=is_stale)
    notes = (*_notes(goal, sorted(ground.frozen), unmended), *about_zeros)
    if unmeasured:
        notes = (*notes, f"{enumerated(unmeasured, 3)}: nothing is known of it on {goal.runtime}")
    if refusals:
        return replace(plan, refusals=tuple(refusals), notes=notes)
    steps = (Step(source, applied(edits)),) if report else ()
    sites, carried = (sites_of(edits), sum(edit.unchanged for edit in edits)) if report else ((), 0)
    splice(edits)
    for entry in imports:
        entry.version = goal.opset
    removed = remove_imports(model, goal.without_domains) if goal.without_domains else ()
    problem = set_ir_version(model, source, settings.ir_version, opset, goal)
    problem = problem or (fit_ml_version(model, goal.runtime) if goal.runtime is not None else None)
    released = release_initializers(model, old_ir)
    # Below IR version 4, inference does not read initializers that are not inputs, so it comes last.
    if problem is None and settings.validate:
        problem = _refuse_misfit(model, source, graph_pass)
    if problem:
        return replace(plan, refusals=(problem,), notes=(*removed, *notes), fitted=removed)
    return replace(
        plan,
        sites=sites,
        carried=carried,
        ir_version=(old_ir, model.ir_version),
        fitted=removed,
        notes=(*removed, *notes, *filter(None, [released])),
        unmended=tuple(unmended),
        caveats=tuple(filter(unmended.get, unmended)),
        steps=steps,
    )


def _notes(goal: Target, frozen: Iterable[str], unmended: Iterable[str]) -> Sequence[str]:
    """Sentences about the runtime, about defaults that were taken for constant, and about what no form avoids."""
    notes = [goal.runtime.note] if goal.runtime is not None and goal.runtime.note else []
    for name in frozen:
        notes.append(f"{name!r} is a default that callers may override; it was taken for constant")
    return [*notes, *told(unmended)] if unmended else notes


def _unmeasured(source: Document, runtime: Runtime) -> tuple[str, ...]:
    """The operators of other domains that are no local functions; onnxruntime has those that it is known for."""
    if source.columns.domains <= DEFAULT_DOMAINS or runtime.name.startswith("onnxruntime"):
        return ()
    model = source.message
    functions = functions_of(model)
    nodes = (node for node in all_nodes(model) if node.domain not in DEFAULT_DOMAINS)
    return tuple(sorted({f"{node.domain}.{node.op_type}" for node in nodes if called_function(node) not in functions}))


def told(unmended: Iterable[str]) -> Iterable[str]:
    """The notes on what no form avoids; see `Plan.unmended`."""
    return [f"{says} No equivalent form avoids that there." for says in unmended]


def _refuse_beforehand(
    model: ModelProto, source: Document, opset: int, goal: Target, settings: Settings
) -> Refusal | None:
    """A refusal of the model as a whole or of the user's declarations, if there is one."""
    if not model.HasField("graph"):
        return Refusal("graph", "", "", "the model holds no graph", "export it again")
    if model.functions and (refused := functions_refused(source.message)):
        return Refusal("graph", "", "", *refused)
    training = model.training_info
    trains = training and any(info.initialization.node or info.algorithm.node for info in training)
    if trains and (goal.opset != opset or goal.without or goal.runtime is not None):
        # They change initializers, so nothing in them is constant.
        reason = "the model holds graphs for training (training_info), which are not converted"
        return Refusal("training_info", "", "", reason, "remove them: del model.training_info[:]")
    return refuse_declarations(source, settings) if settings.element_types or settings.ranks else None


def _refuse_misfit(model: ModelProto, source: Document, graph_pass: GraphPass) -> Refusal | None:
    """Refuse the result if strict inference objects to it, and a rewrite or a rule of the user's own may be the cause.

    Raises:
        RuleError: inference objects, and rules of the user's own were applied.
    """
    doubt, own_rules = graph_pass.doubt, graph_pass.applied
    if not (doubt or own_rules) or not (reason := new_objection(source, Document(model))):
        return None
    if own_rules:
        first, *others = dict.fromkeys(own_rules)
        more = "".join(f", or what {path}:{line} writes" for path, line in others)
        raise RuleError(f"what it writes{more} does not fit the model: {reason}", *first)
    assert doubt is not None
    op_type, hint = doubt
    return Refusal("graph", "", op_type, f"what takes the place of a node does not fit the model: {reason}", hint)


def _kind_of_run(target: Target, settings: Settings) -> Hashable:
    """What determines results apart from the questions about nodes; None if other runs cannot reuse the results.

    The user's declarations and rule books belong to one run only.
    """
    if not settings.memo or settings.element_types or settings.ranks:
        return None
    is_shipped = isinstance(settings.rules, str) and settings.rules in SHIPPED and not target.without_domains
    return (target, settings.rules, settings.validate) if is_shipped else None


def ground_of(
    source: Document, opset: int, settings: Settings, values: Values | None = None, *, assumes_nonempty: bool = False
) -> Ground:
    """What the scopes of a run share; arguments as for `Ground`."""
    return Ground(
        source,
        opset,
        element_types=settings.element_types,
        ranks=settings.ranks,
        base_dir=settings.base_dir,
        freeze_defaults=settings.freeze_defaults,
        ir_version=settings.ir_version,
        assumes_nonempty=assumes_nonempty,
        values=values,
    )


def refuse_declarations(source: Document, settings: Settings) -> Refusal | None:
    """Refuse declared types and ranks of names that are not in the model, or that contradict it.

    Several graphs may use one name. A declaration is accepted if it equals what is known in one of them, or fills it
    in.
    """
    types = {name: parse_element_type(spelled) for name, spelled in (settings.element_types or {}).items()}
    kinds: Sequence[tuple[str, Question, Mapping[str, int], Callable[[int], str]]] = (
        ("element type", "element_type", types, element_type_name),
        ("rank", "rank", settings.ranks or {}, str),
    )
    inference = Inference(source.message)
    graphs = [inference.graph(key) for key in inference.keys] if types or settings.ranks else []
    for what, question, declared, spelled in kinds:
        for name, value in sorted(declared.items()):
            known = [inference.ask(graph, question, name) for graph in graphs if graph.defines(name)]
            if {None, value}.intersection(known):
                continue
            reason = f"no value of the model is named {name!r}, whose {what} is declared"
            reason += "" if known else did_you_mean(name, names_in(source.message))
            if known:
                reason = f"the {what} of {name!r} is {spelled(min(known))}, and {spelled(value)} is declared of it"
            hint = "declare only what the model does not state, by the names of its values"
            return Refusal("", "", "", reason, hint)
    return None
