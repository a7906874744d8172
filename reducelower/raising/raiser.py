"""One pass over a model that folds every form it finds, and says where."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, helper

from reducelower.attributes import attribute_of, value_of
from reducelower.build import copy_marks
from reducelower.constants import remove_unused
from reducelower.convert import Legalized, check
from reducelower.edits import Edit
from reducelower.errors import ConversionError, RefusedError
from reducelower.inference import GraphKey, Inference, function_key, skeleton, subgraphs
from reducelower.names import Names
from reducelower.plan import Plan, Site
from reducelower.raising.forms import AXES, DATA, Form, Manner, Patterns, forms_of
from reducelower.raising.matching import Match, Surroundings, constant_axes, find
from reducelower.run import Book
from reducelower.schemas import DEFAULT_DOMAINS, parse_element_type
from reducelower.scope import Ground, Scope
from reducelower.target import Target

__all__ = ["raise_reductions", "raise_with_plan"]

_BOOKS: tuple[Book, ...] = ("spec", "stable", "core")

_FARTHEST = 10
"""Nodes from a reduction to the result of a form, at most: `core/ReduceMean` has 9."""

_MOST = 64
"""Nodes after one reduction that may be the last of a form."""


def raise_reductions(
    model: ModelProto,
    *,
    ops: Iterable[str] | None = None,
    rules: Iterable[Book] = _BOOKS,
    by_hand: bool = True,
    freeze_defaults: bool = False,
    element_types: Mapping[str, str] | None = None,
    ranks: Mapping[str, int] | None = None,
    base_dir: str | os.PathLike[str] | None = None,
    in_place: bool = False,
) -> ModelProto:
    """Fold primitive forms into the composite Reduce operators they spell out: the way back from `expand`.

    ``Sqrt(ReduceSum(x * x))`` becomes ReduceL2, ``Log(ReduceSum(Exp(x)))`` ReduceLogSumExp, and so on, for the bodies
    of the rule books and for what people write by hand (`rules/forms`). A form is folded where nothing else reads what
    it computes on the way, axes and keepdims are the same throughout, and the model's opset version has the operator
    for the element type. Everything else stays byte for byte, and the node takes the name, doc string and metadata of
    the one that yielded the result. Where in doubt, a form stays as it is.

    The numbers are from then on those of the runtime's own kernel. Where a form overflows or gives NaN and the operator
    does not, as ``Log(ReduceSum(Exp(x)))`` does above 88 in float32, they become right; where the form was more careful
    than the kernel, as `stable`'s L2 is than onnxruntime's above 1e19, that care is given up.

    Args:
        model: any valid ONNX model.
        ops: operators to raise to, such as ``["ReduceLogSumExp"]``; None means all that there are forms for.
        rules: rule books whose bodies are looked for: ``spec``, ``stable``, ``core``, folders, or rule books.
        by_hand: look for what people write by hand as well.
        freeze_defaults: take initializers that are also graph inputs for constants.
        element_types: element types of values that the model does not state, by name, such as ``{"y": "float32"}``.
        ranks: ranks of values that the model does not state, by name.
        base_dir: folder that external data locations are relative to; without it external constants are not read.
        in_place: change and return the model itself rather than a copy.

    Returns:
        The model with composite operators; one without any form comes back as it was.

    Raises:
        ConversionError: the model imports no opset version that the installed onnx knows, or is not valid.
        ValueError: there are no forms for an operator of `ops`, or there is no such element type.
    """
    return raise_with_plan(
        model,
        ops=ops,
        rules=rules,
        by_hand=by_hand,
        freeze_defaults=freeze_defaults,
        element_types=element_types,
        ranks=ranks,
        base_dir=base_dir,
        in_place=in_place,
    ).model


def raise_with_plan(
    model: ModelProto,
    *,
    ops: Iterable[str] | None = None,
    rules: Iterable[Book] = _BOOKS,
    by_hand: bool = True,
    freeze_defaults: bool = False,
    element_types: Mapping[str, str] | None = None,
    ranks: Mapping[str, int] | None = None,
    base_dir: str | os.PathLike[str] | None = None,
    in_place: bool = False,
) -> Legalized:
    """Do as `raise_reductions`, and say what was folded where.

    Args:
        model: see `raise_reductions`, as all that follow.
        ops: operators to raise to.
        rules: rule books whose bodies are looked for.
        by_hand: look for what people write by hand as well.
        freeze_defaults: take initializers that are also graph inputs for constants.
        element_types: element types of values that the model does not state.
        ranks: ranks of values that the model does not state.
        base_dir: folder that external data locations are relative to.
        in_place: change and return the model itself rather than a copy.

    Returns:
        The model, and a plan with a site per composite operator; `reducelower.verify` takes the plan.

    Raises:
        ConversionError: see `raise_reductions`, as the next.
        ValueError: there are no forms for an operator, or there is no such element type.
    """
    books = tuple(rules)
    wanted = None if ops is None else frozenset(ops)
    _check_operators(wanted, books, by_hand=by_hand)
    bare = skeleton(model)
    as_it_is = check(bare, target=Target())
    if as_it_is.refusals:
        raise ConversionError(as_it_is.refusals)
    result = model
    if not in_place:
        result = ModelProto()
        result.CopyFrom(model)
    ground = Ground(
        Names(lambda: result, None),
        Inference(lambda: bare),
        opset=as_it_is.source_opset,
        element_types={name: parse_element_type(given) for name, given in (element_types or {}).items()},
        ranks=ranks or {},
        base_dir=None if base_dir is None else Path(base_dir),
        freeze_defaults=freeze_defaults,
        overridable=result.ir_version >= 4,
        initializers_stand_alone=result.ir_version >= 4,
    )
    raiser = _Raiser(ground, wanted, books, by_hand=by_hand)
    sites = raiser.run(result, as_it_is.source_opset)
    notes = tuple(
        f"{name!r} is a default that callers may override; it was taken for constant" for name in sorted(ground.frozen)
    )
    versions = (result.ir_version, result.ir_version)
    carried = as_it_is.carried - sum(len(site.raised_from) for site in sites)
    return Legalized(result, Plan(as_it_is.source_opset, as_it_is.target, sites, (), carried, versions, notes))


def _check_operators(ops: Collection[str] | None, books: Iterable[Book], *, by_hand: bool) -> None:
    from reducelower.bodies import Rules
    from reducelower.rulebook.book import load_forms

    known = {name for book in books for name in Rules(book).book.operators}
    known |= {name for book in load_forms() for name in book.operators} if by_hand else set()
    for name in ops or ():
        if name not in known:
            raise ValueError(f"there is no form of {name!r} to look for; there are of {', '.join(sorted(known))}")


class _Raiser:
    """One run over one model."""

    def __init__(self, ground: Ground, ops: Collection[str] | None, books: Iterable[Book], *, by_hand: bool) -> None:
        self._ground = ground
        self._ops = ops
        self._books = tuple(books)
        self._by_hand = by_hand
        self._patterns = Patterns()
        self._forms: dict[int, tuple[Form, ...]] = {}
        self._edits: list[Edit] = []
        self._regions: dict[int, dict[int, tuple[int, ...]]] = {}

    def run(self, model: ModelProto, opset: int) -> tuple[Site, ...]:
        """Fold what there is to fold; the sites in graph order."""
        self._walk(Scope(self._ground, model.graph, opset, "graph", key=()))
        for number, function in enumerate(model.functions):
            self._walk_function(function, number)
        remove_unused(self._ground.released, (), self._edits, None)
        return tuple(self._splice())

    def _walk_function(self, function: FunctionProto, number: int) -> None:
        overload = f":{function.overload}" if function.overload else ""
        path = f"functions/{function.domain}::{function.name}{overload}"
        imported = [entry.version for entry in function.opset_import if entry.domain in DEFAULT_DOMAINS]
        if imported:
            self._walk(Scope(self._ground, function, imported[0], path, key=function_key(number)))

    def _walk(self, scope: Scope) -> None:
        edit = Edit(scope)
        self._edits.append(edit)
        nodes = scope.holder.node
        for index, node in enumerate(nodes):
            if node.op_type == "Constant" and node.domain in DEFAULT_DOMAINS and node.output:
                scope.constant_nodes[node.output[0]] = (index, node)
        if any(node.op_type.startswith("Reduce") and node.domain in DEFAULT_DOMAINS for node in nodes):
            self._fold(edit)
        for index, node in enumerate(nodes):
            for number, attribute, graph in subgraphs(node):
                path = f"{scope.path}/{node.name or f'{node.op_type}#{index}'}.{attribute}"
                key: GraphKey | None = None if scope.key is None else (*scope.key, index, number)
                self._walk(Scope(self._ground, graph, scope.opset, path, scope, key))

    # One graph

    def _fold(self, edit: Edit) -> None:
        surroundings = Surroundings(edit.scope.holder)
        taken: set[int] = set()
        for last, reduction, form, manner in self._candidates(surroundings, edit.scope):
            if last in taken or reduction in taken:
                continue
            pattern = self._patterns.of(form, manner)
            match = None if pattern is None else find(pattern, last, surroundings, edit.scope)
            if match is None or match.region & taken or reduction not in match.region:
                continue
            if edit.scope.element_type(match.values[DATA]) != manner.element_type:
                continue
            taken |= match.region
            self._replace(edit, last, match, form, manner, surroundings.nodes[reduction])

    def _candidates(self, surroundings: Surroundings, scope: Scope) -> list[tuple[int, int, Form, Manner]]:
        """What could be a form: its last node, a reduction in it, and how that reduces; the largest forms first.

        From the results back, so that a form inside another is not taken out of it.
        """
        found: list[tuple[int, int, int, Form, Manner]] = []
        for reduction, node in enumerate(surroundings.nodes):
            if not node.op_type.startswith("Reduce") or node.domain not in DEFAULT_DOMAINS:
                continue
            for last in _after(reduction, surroundings):
                element_type = scope.element_type(surroundings.nodes[last].output[0])
                manner = None if element_type is None else _manner(node, scope, element_type)
                if manner is None:
                    continue
                for form in self._forms_of(manner.element_type):
                    adapted = _with_count(manner, node, scope) if form.takes_count else manner
                    pattern = None if adapted is None else self._patterns.of(form, adapted)
                    if pattern is not None and pattern.last.op_type == surroundings.nodes[last].op_type:
                        assert adapted is not None
                        found.append((last, pattern.size, reduction, form, adapted))
        found.sort(key=lambda item: item[:2], reverse=True)
        return [(last, reduction, form, manner) for last, _, reduction, form, manner in found]

    def _forms_of(self, element_type: int) -> tuple[Form, ...]:
        if element_type not in self._forms:
            self._forms[element_type] = tuple(forms_of(element_type, self._ops, self._books, by_hand=self._by_hand))
        return self._forms[element_type]

    def _replace(self, edit: Edit, last: int, match: Match, form: Form, manner: Manner, reduction: NodeProto) -> None:
        scope, nodes = edit.scope, edit.scope.holder.node
        made = NodeProto(op_type=form.op_type, input=[match.values[DATA]], output=nodes[last].output)
        copy_marks(nodes[last], made)
        if manner.takes_axes_as_input:
            if AXES in match.values:
                made.input.append(match.values[AXES])
        elif manner.axes is not None:
            made.attribute.append(helper.make_attribute("axes", manner.axes))
        made.attribute.append(helper.make_attribute("keepdims", manner.keepdims))
        if manner.noop:
            made.attribute.append(helper.make_attribute("noop_with_empty_axes", manner.noop))
        for index in match.region:
            edit.replaced[index] = []
            inside = set(nodes[index].output) if index != last else set()
            _forget(scope.holder, inside)
        for name in {name for index in match.region for name in nodes[index].input if name} - set(made.input):
            if name in match.constants or scope.constant(name) is not None:
                scope.release(name)
        edit.replaced[last] = [made]
        edit.sites[last] = (form.op_type, f"raised from {form.rule.name}")
        self._regions.setdefault(id(edit), {})[last] = tuple(sorted(match.region))

    def _splice(self) -> Iterator[Site]:
        groups: list[list[Site]] = []
        for edit in reversed(self._edits):
            nodes, path = edit.scope.holder.node, edit.scope.path
            names = {index: nodes[index].name or f"{nodes[index].op_type}#{index}" for index in edit.sites}
            positions = edit.splice()
            groups.append(
                [
                    Site(path, names[index], *edit.sites[index], index, *positions[index], raised_from=region)
                    for index, region in sorted(self._regions.get(id(edit), {}).items())
                ]
            )
        for group in reversed(groups):
            yield from group


def _after(reduction: int, surroundings: Surroundings) -> list[int]:
    """Positions of a reduction and of the nodes that read what comes of it, nearest first."""
    found = {reduction: None}
    border = [reduction]
    for _ in range(_FARTHEST):
        names = [name for index in border for name in surroundings.nodes[index].output]
        readers = {index for name in names for index in surroundings.readers.get(name, ())}
        border = sorted(index for index in readers - found.keys() if len(surroundings.nodes[index].output) == 1)
        found.update(dict.fromkeys(border))
        if not border or len(found) > _MOST:
            break
    return [index for index in list(found)[:_MOST] if len(surroundings.nodes[index].output) == 1]


def _manner(node: NodeProto, scope: Scope, element_type: int) -> Manner | None:
    """How a Reduce node reduces; None where that is not known here."""
    try:
        keepdims, noop = value_of(node, "keepdims", 1), value_of(node, "noop_with_empty_axes", 0)
        attribute = attribute_of(node, "axes")
        if attribute is not None:
            axes = value_of(node, "axes")
            return Manner(scope.opset, element_type, keepdims, noop, bool(axes), tuple(axes) or None)
        if len(node.input) > 1 and node.input[1]:
            return Manner(scope.opset, element_type, keepdims, noop, True, constant_axes(node.input[1], scope))
    except RefusedError:
        return None
    return Manner(scope.opset, element_type, keepdims, noop, False)


def _with_count(manner: Manner, node: NodeProto, scope: Scope) -> Manner | None:
    """The manner with the number of elements that one output is made of; None where the shape does not tell it."""
    shape = scope.shape(node.input[0])
    if shape is None or (manner.has_axes and manner.axes is None):
        return None
    axes = manner.axes if manner.axes else range(len(shape))
    if any(not -len(shape) <= axis < len(shape) for axis in axes):
        return None
    sizes = [shape[axis] for axis in axes]
    count = 1
    for size in sizes:
        if not size:
            return None
        count *= size
    exact = np.array(count).astype(helper.tensor_dtype_to_np_dtype(manner.element_type))
    if int(exact) != count:
        return None
    return Manner(manner.opset, manner.element_type, manner.keepdims, manner.noop, manner.has_axes, manner.axes, count)


def _forget(holder: GraphProto | FunctionProto, names: Collection[str]) -> None:
    """Remove what is stated about values that are no more."""
    for index in reversed(range(len(holder.value_info))):
        if holder.value_info[index].name in names:
            del holder.value_info[index]
