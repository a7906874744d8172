"""The public functions of recompose."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial

from onnx import ModelProto

from reducelower.api import Legalized, check
from reducelower.arguments import check_options
from reducelower.errors import ConversionError
from reducelower.given import of_any_model
from reducelower.legalization.composed import composed
from reducelower.legalization.engine import explain_failures
from reducelower.legalization.functions import inline
from reducelower.legalization.run import ground_of, refuse_declarations
from reducelower.model.document import Document
from reducelower.model.skeleton import LARGEST_CONSTANT, skeleton
from reducelower.options import Settings, Target
from reducelower.plan import Plan
from reducelower.recompose.expansions import expandable
from reducelower.recompose.expressions import written_operators
from reducelower.recompose.raiser import Left, Raiser
from reducelower.rewrites import Step

__all__ = ["known_operators", "raise_reductions", "raise_with_plan"]


@of_any_model
def raise_reductions(
    model: Document,
    *,
    ops: Iterable[str] | None = None,
    freeze_defaults: bool = False,
    element_types: Mapping[str, str] | None = None,
    ranks: Mapping[str, int] | None = None,
    base_dir: str | os.PathLike[str] | None = None,
    in_place: bool = False,
) -> Document:
    """Fold primitive forms into the composite Reduce operators they spell out: the reverse of `expand`.

    ``Sqrt(ReduceSum(x * x))`` becomes ReduceL2, ``Log(ReduceSum(Exp(x)))`` ReduceLogSumExp, and so on, for the bodies
    of the rule books and for what people write by hand (`rules/forms`). A form is folded if nothing else reads its
    intermediate results, axes and keepdims are the same throughout, and the model's opset version has the operator for
    the element type. If in doubt, a form stays as it is. Everything else stays byte for byte. The new node takes the
    name, doc string and metadata of the one that yielded the result.

    The results are then those of the runtime's own kernel. If a form overflows or gives NaN and the operator does not,
    as ``Log(ReduceSum(Exp(x)))`` above 88 in float32, they become right. If the form was more careful than the kernel,
    as L2 of `stable` is above 1e19 compared with onnxruntime's, that care is lost.

    Args:
        model: any valid ONNX model, in any form; see `reducelower.legalize`.
        ops: operators to raise to, such as ``["ReduceLogSumExp"]``; None means all that there are forms for.
        freeze_defaults: treat initializers that are also graph inputs as constants.
        element_types: element types by value name that the model does not state, such as ``{"y": "float32"}``.
        ranks: ranks by value name that the model does not state.
        base_dir: folder that external data locations are relative to, or the model's file; without it external
            constants are not read.
        in_place: change and return the model itself rather than a copy.

    Returns:
        The model with composite operators; unchanged if it has no forms.

    Raises:
        ConversionError: the model imports no opset version that the installed onnx knows, or is not valid, or
            contradicts the declared element types or ranks.
        ValueError: there are no forms for an operator of `ops`, or there is no such element type.

    Example:
        >>> import onnx, reducelower
        >>> text = '<ir_version: 8, opset_import: ["": 18]> g (float[3] x) => (float[1] y) { y = ReduceL2 (x) }'
        >>> model = onnx.parser.parse_model(text)
        >>> spelled = reducelower.expand(model, rules="core")
        >>> [node.op_type for node in reducelower.raise_reductions(spelled).graph.node]
        ['ReduceL2']
    """
    check_options({"element_types": element_types, "ranks": ranks})
    settings = Settings(freeze_defaults=freeze_defaults, element_types=element_types, ranks=ranks, base_dir=base_dir)
    result = raise_with_plan(model.message, settings, ops=ops, in_place=in_place)
    return Document(result.model)


def raise_with_plan(
    model: ModelProto,
    settings: Settings | None = None,
    *,
    ops: Iterable[str] | None = None,
    in_place: bool = False,
) -> Legalized:
    """As `raise_reductions`, but return the plan as well, which `reducelower.verify` takes."""
    settings = settings or Settings()
    available = known_operators()
    chosen = available if ops is None else frozenset(ops)
    for name in chosen - available:
        raise ValueError(f"there is no form of {name!r} to look for; there are of {', '.join(sorted(available))}")
    with explain_failures(Document(model)):
        return _raised(model, settings, chosen, in_place=in_place)


def _raised(model: ModelProto, settings: Settings, chosen: Collection[str], *, in_place: bool) -> Legalized:
    unchanged = check(skeleton(model), target=Target())
    if unchanged.refusals:
        raise ConversionError(unchanged.refusals)
    if wrong := refuse_declarations(Document(model), settings):
        raise ConversionError([wrong])
    result = model if in_place else deepcopy(model)
    calling = deepcopy(model) if model.functions else None
    if calling is not None:
        inline(result)  # as verification does, which finds the sites by their positions
    one_pass = partial(_one_pass, result, settings, unchanged, chosen)
    before = skeleton(result, LARGEST_CONSTANT)
    plan, left = one_pass(before)
    further = plan
    while further.sites:  # a composed operator may be part of a larger form
        between = skeleton(result, LARGEST_CONSTANT)
        further, left = one_pass(between)
        plan = composed(plan, further, before, between, result) if further.sites else plan
    if calling is not None and not plan.sites:
        result.CopyFrom(calling)
    return Legalized(result, replace(plan, notes=(*plan.notes, *_sentences(left))))


def _one_pass(
    result: ModelProto, settings: Settings, unchanged: Plan, chosen: Collection[str], before: ModelProto
) -> tuple[Plan, Sequence[Left]]:
    """Compose, in place, the operators that a model spells out; return the plan, and what was left."""
    source = Document(before)
    ground = ground_of(source, unchanged.source_opset, replace(settings, ir_version="keep"))
    raiser = Raiser(ground, chosen)
    try:
        sites = raiser.run(result, unchanged.source_opset)
    finally:
        ground.clear_caches()
    notes = tuple(
        f"{name!r} is a default that callers may override; it was taken for constant" for name in sorted(ground.frozen)
    )
    versions = (result.ir_version, result.ir_version)
    carried = raiser.nodes - sum(len(site.raised_from) for site in sites)
    steps = (Step(source, None),)
    plan = Plan(unchanged.source_opset, unchanged.target, sites, (), carried, versions, notes, steps=steps)
    return plan, raiser.left


def known_operators() -> frozenset[str]:
    """The operators with forms."""
    return frozenset((*written_operators(), *expandable()))


def _sentences(left: Iterable[Left]) -> Iterator[str]:
    """One sentence for each operator and reason, about what would be the operator at another opset version."""
    groups: dict[tuple[str, str], list[Left]] = {}
    for each in left:
        groups.setdefault((each.op_type, each.why), []).append(each)
    for (op_type, why), places in groups.items():
        first = places[0]
        others = f" and {len(places) - 1} more look" if len(places) > 1 else " looks"
        yield f"what ends in {first.node} ({first.graph}){others} like {op_type} and was left: {why}"
