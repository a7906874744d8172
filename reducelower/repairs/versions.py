"""Repairs of imports, of the IR version, and of nodes in the form of another opset version than the imported one."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import IR_VERSION, ModelProto, helper

from reducelower.legalization.run import run
from reducelower.legalization.versions import ir_version_of_opset, needed_ir_version, release_initializers
from reducelower.legalization.written_for import written_for
from reducelower.model.document import Document
from reducelower.model.graph import walk
from reducelower.model.schemas import DEFAULT_DOMAINS, opset_of, plain_domain
from reducelower.options import Settings, Target
from reducelower.text import counted

__all__ = ["add_imports", "fit_ir_version", "move_to_import"]

_LONG = "ai.onnx"
"""The other spelling of the default domain."""


def add_imports(model: ModelProto) -> Iterator[str]:
    """Import the domains of nodes that lack an import."""
    yield from _spell_default_domain(model)
    imported = {plain_domain(entry.domain) for entry in model.opset_import}
    for domain in sorted({plain_domain(node.domain) for node in walk(model.graph.node)} - imported):
        version = _version_of(domain, model)
        model.opset_import.add(domain=domain, version=version)
        yield f"imported {domain or 'the default domain'} at version {version}"


def _spell_default_domain(model: ModelProto) -> Iterator[str]:
    """Spell the default domain of nodes as an empty string: the checker knows no other spelling of it, runtimes do."""
    if any(function.domain == _LONG for function in model.functions):
        return
    spelled = [node for node in walk(model.graph.node) if node.domain == _LONG]
    for node in spelled:
        node.domain = ""
    if spelled:
        yield f"replaced the domain {_LONG!r} of {counted(len(spelled), 'node')} by '', as the checker spells it"


def _version_of(domain: str, model: ModelProto) -> int:
    if not domain and (imported := opset_of(model)):
        return imported
    # The newest version released with the IR version; 1 for a domain that onnx does not know.
    name = domain or "ai.onnx"
    opsets = [opset for (of, opset), needed in helper.OP_SET_ID_VERSION_MAP.items() if of == name]
    fitting = [opset for opset in opsets if helper.OP_SET_ID_VERSION_MAP[name, opset] <= model.ir_version]
    return max(fitting or opsets[:1] or [1])


def fit_ir_version(model: ModelProto) -> Iterator[str]:
    """Raise an IR version that is too old for the contents, or lower one that the installed onnx does not know."""
    old = model.ir_version
    needed = needed_ir_version(model, Document(model))
    if old <= 0:
        model.ir_version = max(needed, ir_version_of_opset(opset_of(model, 1)))
    elif old < needed or old > IR_VERSION >= needed:
        model.ir_version = needed if old < needed else IR_VERSION
    if model.ir_version != old:
        yield f"changed the IR version from {old} to {model.ir_version}, which fits what the model uses"
    if released := release_initializers(model, old):
        yield released


def move_to_import(model: ModelProto) -> Iterator[str]:
    """Move nodes in the form of another opset version to the one that the model imports, as a conversion does."""
    opset = opset_of(model)
    misplaced = {
        (node.op_type, written)
        for node in walk(model.graph.node)
        if node.domain in DEFAULT_DOMAINS and (written := written_for(node, opset)) is not None
    }
    if not misplaced:
        return
    document = Document(model)
    moved = document.copy()
    plan = run(moved, document, Target(), Settings(ir_version="keep"), repairs=True)
    if not plan.refusals:
        model.CopyFrom(moved)
        listing = ", ".join(f"{op_type} of opset {written}" for op_type, written in sorted(misplaced))
        yield f"moved nodes to opset {opset}, which the model imports: {listing}"
