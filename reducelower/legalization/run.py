"""One run over one model: from model, target and settings to a plan and a legal model."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

from onnx import ModelProto

from reducelower.errors import Refusal, RuleError
from reducelower.legalization.checking import new_objection
from reducelower.legalization.edits import applied, notes_on_zeros, sites_of, splice
from reducelower.legalization.functions import functions_refused
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
from reducelower.model.document import Document
from reducelower.model.graph import UNLIKE_BRANCHES_SINCE, all_nodes
from reducelower.model.schemas import element_type_name, has_body, parse_element_type, schema
from reducelower.model.skeleton import names_in
from reducelower.options import Settings, Target
from reducelower.plan import Plan
from reducelower.rewrites import Step
from reducelower.rulebook.rules import SHIPPED, load_book
from reducelower.scope.ground import Ground
from reducelower.text import did_you_mean
from reducelower.types import Inference
from reducelower.types.known import Question

__all__ = ["refuse_declarations", "run"]


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
        ground = Ground(source, goal.opset, settings, memory.values, assumes_nonempty=goal.assume_nonempty)
        graph_pass = GraphPass(ground, rewriter, opset, memory, settings)
        try:
            refusals = graph_pass.run(model)
            unmended = graph_pass.unmended
        finally:
            ground.clear_caches()
    edits = graph_pass.edits
    is_conditional, notes = notes_on_zeros(edits, goal, is_asked=target.assume_nonempty)
    plan = replace(plan, refusals=tuple(refusals), unmended=unmended, assumes_nonempty=is_conditional)
    notes = (*_notes(goal, sorted(ground.frozen), unmended), *notes)
    if refusals:
        return replace(plan, notes=notes, unmended=())
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
        problem = _refuse_misfit(model, source, opset, rewriter, graph_pass)
    if problem:
        return replace(plan, refusals=(problem,), notes=(*removed, *notes), fitted=removed, unmended=())
    notes = (*removed, *notes, *filter(None, [released]))
    versions = old_ir, model.ir_version
    return replace(plan, notes=notes, fitted=removed, sites=sites, carried=carried, ir_version=versions, steps=steps)


def _notes(goal: Target, frozen: Iterable[str], unmended: Iterable[str]) -> Iterator[str]:
    """Sentences about the runtime, about defaults that were taken for constant, and about what no form avoids."""
    if goal.runtime is not None and goal.runtime.note:
        yield goal.runtime.note
    for name in frozen:
        yield f"{name!r} is a default that callers may override; it was taken for constant"
    for says in unmended:
        yield f"{says} No equivalent form avoids that there."


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


def _refuse_misfit(
    model: ModelProto, source: Document, opset: int, rewriter: NodeRewriter, graph_pass: GraphPass
) -> Refusal | None:
    """Refuse the result if strict inference objects to it, and a rewrite or a rule of the user's own may be the cause.

    Raises:
        RuleError: inference objects, and rules of the user's own were applied.
    """
    in_doubt, hint = _doubt(model, opset, rewriter, graph_pass.doubts)
    own_rules = graph_pass.applied
    if not (in_doubt or own_rules) or not (reason := new_objection(source, Document(model))):
        return None
    if own_rules:
        first, *others = dict.fromkeys(own_rules)
        more = "".join(f", or what {path}:{line} writes" for path, line in others)
        raise RuleError(f"what it writes{more} does not fit the model: {reason}", *first)
    return Refusal("graph", "", in_doubt, f"what takes the place of a node does not fit the model: {reason}", hint)


def _doubt(model: ModelProto, opset: int, rewriter: NodeRewriter, doubts: Sequence[str]) -> tuple[str, str]:
    """An operator of which the result may not fit the model, and what to do then; empty if there is none."""
    if doubts:
        return doubts[0], "state the types of what it reads and yields"
    goal = rewriter.goal
    if goal < UNLIKE_BRANCHES_SINCE <= opset and any(node.op_type == "If" for node in all_nodes(model)):
        # With more constants than before, inference may find different shapes in the branches of an If.
        return "If", f"opset {UNLIKE_BRANCHES_SINCE} is the oldest whose branches may give different shapes"
    for op_type in sorted(set[str]().union(*rewriter.tables.values())):
        if _is_inferred_only_at(goal, op_type, opset):
            reason = f"at opset {opset} inference does not know {op_type}"
            return op_type, f"correct the types that the model states; {reason}"
    return "", ""


@cache
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
    """What determines results apart from the questions about nodes; None if other runs cannot reuse the results.

    The user's declarations and rule books belong to one run only.
    """
    if not settings.memo or settings.element_types or settings.ranks:
        return None
    is_shipped = isinstance(settings.rules, str) and settings.rules in SHIPPED and not target.without_domains
    return (target, settings.rules, settings.validate) if is_shipped else None


def refuse_declarations(source: Document, settings: Settings) -> Refusal | None:
    """Refuse declared types and ranks of names that are not in the model, or that contradict it."""
    if not settings.element_types and not settings.ranks:
        return None
    reason = _contradiction(source.message, settings.element_types or {}, settings.ranks or {})
    hint = "declare only what the model does not state, by the names of its values"
    return Refusal("", "", "", reason, hint) if reason else None


def _contradiction(model: ModelProto, element_types: Mapping[str, str], ranks: Mapping[str, int]) -> str:
    """Return a sentence about a declaration that contradicts the model, or an empty string.

    Several graphs may use one name. A declaration is accepted if it equals what is known in one of them, or fills it
    in.
    """
    inference = Inference(model)
    types = {name: parse_element_type(spelled) for name, spelled in element_types.items()}
    within = [inference.graph(key) for key in inference.keys]
    kinds: tuple[tuple[str, Question, Mapping[str, int], Callable[[int], str]], ...] = (
        ("element type", "element_type", types, element_type_name),
        ("rank", "rank", ranks, str),
    )
    for what, question, declared, spelled in kinds:
        for name, value in sorted(declared.items()):
            known = [inference.ask(graph, question, name) for graph in within if graph.defines(name)]
            if not known:
                near = did_you_mean(name, names_in(model))
                return f"no value of the model is named {name!r}, whose {what} is declared{near}"
            if not {None, value}.intersection(known):
                return f"the {what} of {name!r} is {spelled(min(known))}, and {spelled(value)} is declared of it"
    return ""
