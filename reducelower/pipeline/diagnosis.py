"""What is wrong with a model: the verdict of ONNX's checker in plain words, and what runtimes run nevertheless."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from onnx import ModelProto, NodeProto, checker
from onnx.shape_inference import InferenceError

from reducelower.files import LoadedModel
from reducelower.legalization.functions import find_call_defect
from reducelower.legalization.whole.dead_branches import replace_dead_branches
from reducelower.legalization.written_for import EXPERIMENTAL, deprecated_from_start, written_for
from reducelower.model.document import Document
from reducelower.model.graph import graphs
from reducelower.model.protected import infer_shapes
from reducelower.model.schemas import (
    DEFAULT_DOMAINS,
    all_operators,
    first_version,
    is_runtime_name,
    opset_of,
    since_version,
    versions,
)
from reducelower.model.skeleton import skeleton
from reducelower.pipeline.stand_ins import Ignores, checkable
from reducelower.repairs import Repaired, repair
from reducelower.repairs.stated_types import drop_stale, state_outputs, states_nothing
from reducelower.text import did_you_mean

__all__ = ["cures", "repaired", "sound", "what_is_wrong", "what_is_wrong_with_source", "what_would_help"]

_UNKNOWN_OPERATOR = re.compile(r"No Op registered for (\S+) with domain_version of (-?\d+)")
_UNDEFINED = re.compile(r"however input '(.*?)' of node: \nname: (.*?) OpType: (\S*)", re.DOTALL)
_DEFINED_TWICE = re.compile(r"however '(.*?)' has been used as .* multiple times", re.DOTALL)
_NODE = re.compile(r"Bad node spec for node\. Name: (.*?) OpType: (\S*)", re.DOTALL)


def what_is_wrong(
    document: Document, *, place: Path | None = None, full: bool = False, ignores: Ignores | None = None
) -> str:
    """Describe the checker's objection in a sentence; empty if the model is valid.

    `place`: the model's file, if tensors have data elsewhere (see `LoadedModel.data_place`). `full`: also infer shapes
    and compare them with the stated ones. `ignores`: nodes that are not looked at.
    """
    if ignores is None and not EXPERIMENTAL.isdisjoint(document.columns.operators):
        ignores = _is_experimental
    checked = checkable(document, place=place, ignores=ignores)
    # With such a call, checker and inference would recurse without end, or take forever.
    if problem := find_call_defect(checked.message):
        return problem
    try:
        checker.check_model(checked.data)
        if full:
            infer_shapes(skeleton(checked.message), check_type=True, strict_mode=True)
    except (checker.ValidationError, InferenceError) as error:
        return _explained(str(error), checked.message)
    except UnicodeDecodeError:
        return "it holds a name or text that is not UTF-8"
    except (ValueError, RuntimeError, TypeError) as error:
        return f"the ONNX checker cannot read it: {_first_line(str(error))}"
    return ""


def what_is_wrong_with_source(document: Document, *, place: Path | None = None, full: bool = False) -> str:
    """Like `what_is_wrong`, but accept operators that onnxruntime adds, and those that exporters write although they
    were deprecated from the start."""
    wrong = what_is_wrong(document, place=place, full=full)
    return what_is_wrong(document, place=place, full=full, ignores=_runtimes_run) if wrong else ""


def _is_experimental(node: NodeProto, opset: int) -> bool:
    """Whether checker and inference would print a warning about a node."""
    return node.op_type in EXPERIMENTAL


def _runtimes_run(node: NodeProto, opset: int) -> bool:
    """Whether runtimes run a node that the checker refuses."""
    is_of_runtimes = is_runtime_name(node.op_type) or deprecated_from_start(node.op_type, opset)
    return bool(first_version(node.op_type, opset)) or is_of_runtimes or _is_experimental(node, opset)


def _explained(text: str, model: ModelProto) -> str:
    if other_opset := _written_for_other_opset(model):
        return other_opset
    if match := _UNKNOWN_OPERATOR.search(text):
        return _unknown_operator(match[1], int(match[2]))
    if match := _UNDEFINED.search(text):
        value, node, operator = match.groups()
        where = f"{operator} {node!r}" if node else operator
        if any(value in other.output for other in model.graph.node):
            return f"{where} uses {value!r} before it is computed: its nodes are out of order or form a cycle"
        return f"{where} uses {value!r}, which nothing defines"
    if match := _DEFINED_TWICE.search(text):
        return f"{match[1]!r} is defined more than once"
    if "must specify opset_import" in text:
        return "it does not say which opset it is written for (no opset_import)"
    where = f" ({match[2]} {match[1]!r})" if (match := _NODE.search(text)) else ""
    return f"the ONNX checker refuses it: {_first_line(text)}{where}"


def _written_for_other_opset(model: ModelProto) -> str:
    """A sentence about a node written for another opset version, which repair mends; empty if there is none."""
    opset = opset_of(model)
    for _, graph in graphs(model):
        for node in graph.node:
            written = written_for(node, opset) if node.domain in DEFAULT_DOMAINS else None
            if written is not None:
                place = f"{node.op_type} {node.name!r}" if node.name else node.op_type
                return f"{place} is written for opset {written}, and the model imports opset {opset}"
    return ""


def _unknown_operator(operator: str, opset: int) -> str:
    if opset < 1:
        return f"it imports opset {opset}, and there is no such opset; correct opset_import"
    if since_version(operator, opset):
        return f"the domain of {operator} is spelled 'ai.onnx', and the ONNX checker knows it as an empty string"
    if opsets := versions(operator):
        return (
            f"{operator} does not exist at opset {opset}; it came with opset {opsets[0]}: export the model again, or "
            f"correct opset_import if it is of opset {opsets[0]} or newer"
        )
    return f"ONNX has no operator {operator!r}{did_you_mean(operator, all_operators())}"


def _first_line(text: str) -> str:
    stripped = text.replace("[ShapeInferenceError] ", "").strip()
    return stripped.splitlines()[0].rstrip(". ") if stripped else "no reason given"


_NEVER_TAKEN = "Put branches that are taken in the place of those that never are, which the checker refuses."


def cures(source: LoadedModel) -> Iterator[tuple[LoadedModel, tuple[str, ...]]]:
    """The model with a type for each output, then without what runtimes ignore (branches that are never taken, types of
    inner values that contradict the nodes), each with notes about that."""
    if find_call_defect(source.model):
        yield source, ()
        return  # inference would recurse without end, or take forever
    notes: tuple[str, ...] = ()
    if any(map(states_nothing, source.model.graph.output)):
        stated = source.document.copy()
        source, notes = repaired(source, Repaired(stated, tuple(state_outputs(stated))))
    yield source, notes
    pruned, mended = source.document.copy(), source.document.copy()
    if replace_dead_branches(pruned):
        yield replace(source, document=Document(pruned)), (*notes, _NEVER_TAKEN)
    if done := tuple(drop_stale(mended)):
        source, more = repaired(source, Repaired(mended, done))
        yield source, (*notes, *more)


def sound(source: LoadedModel) -> tuple[LoadedModel, tuple[str, ...], str]:
    """The first form of the model that is valid, notes about it, and the defect of the model if none is."""
    defects = []
    for candidate, notes in cures(source):
        defect = what_is_wrong_with_source(candidate.document, place=candidate.data_place, full=True)
        if not defect:
            return candidate, notes, ""
        defects.append(defect)
    return source, (), defects[0] + what_would_help(source)


def repaired(source: LoadedModel, mended: Repaired) -> tuple[LoadedModel, tuple[str, ...]]:
    """The repaired model in place of the source, and notes about the repairs."""
    notes = tuple(f"Repaired: {done}." for done in mended.done)
    return replace(source, document=Document(mended.model)), notes


def what_would_help(source: LoadedModel) -> str:
    """A sentence about what --repair would do to an invalid model; empty if that would not make it valid."""
    mended = repair(source.model)
    if not mended.done or what_is_wrong_with_source(Document(mended.model), place=source.data_place):
        return ""
    return f"; --repair fixes that: it would have {', and '.join(mended.done)}"
