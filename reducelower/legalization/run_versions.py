"""The opset versions that a model imports, and those of a target."""

from __future__ import annotations

from collections.abc import Iterator, MutableSequence
from dataclasses import replace

from onnx import ModelProto, NodeProto, OperatorSetIdProto

from reducelower.errors import Refusal
from reducelower.model.document import Document
from reducelower.model.graph import all_nodes
from reducelower.model.schemas import DEFAULT_DOMAINS, latest_opset, parse_element_type, schema_in_force, versions
from reducelower.model.written_for import has_form
from reducelower.options import Target

__all__ = ["default_imports", "fit_ml_version", "imports_of", "with_opset"]

ML = "ai.onnx.ml"
"""The domain of classical machine learning, which has versions of its own."""


def imports_of(
    model: ModelProto, domain: str
) -> Iterator[tuple[MutableSequence[OperatorSetIdProto], OperatorSetIdProto]]:
    """The imports of a domain by a model and its functions, each with the list that contains it."""
    for imports in (model.opset_import, *(function.opset_import for function in model.functions)):
        yield from ((imports, entry) for entry in imports if entry.domain == domain)


def default_imports(
    model: ModelProto, source: Document, target: Target
) -> tuple[list[OperatorSetIdProto], int, Refusal | None]:
    """The default-domain imports to change to the target's version, the opset version, and a refusal of a wrong one."""
    imports = [entry for entry in model.opset_import if entry.domain in DEFAULT_DOMAINS]
    if not imports:
        domains = {node.domain for node in all_nodes(source.message)}
        if domains and domains.isdisjoint(DEFAULT_DOMAINS):
            # No node is of the default domain, and it is not imported: import the target's version.
            added = [] if target.opset is None else [model.opset_import.add(version=target.opset)]
            return added, target.opset or latest_opset(), None
        reason = "it imports no opset of the default domain, so nothing says what its operators mean"
        return imports, 0, Refusal("graph", "", "", reason, "set opset_import")
    opset, *others = sorted({entry.version for entry in imports})
    if others:
        listed = " and ".join(map(str, [opset, *others[:8]]))
        reason = f"it imports the default domain more than once, at opsets {listed}"
        return imports, imports[0].version, Refusal("graph", "", "", reason, "keep the one its nodes are written for")
    if not 1 <= opset <= latest_opset():
        reason = f"it imports opset {opset}, and the onnx installed knows opsets 1 to {latest_opset()}"
        hint = "install a newer onnx" if opset > 0 else "mend opset_import"
        return imports, opset, Refusal("graph", "", "", reason, hint)
    return imports, opset, None


def with_opset(target: Target, source_opset: int) -> Target:
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
    is_unchanged = (opset, assumes) == (target.opset, target.assume_nonempty)
    return target if is_unchanged else replace(target, opset=opset, assume_nonempty=assumes)


def fit_ml_version(model: ModelProto, target: Target) -> Refusal | None:
    """Lower ai.onnx.ml imports to the newest version that the runtime reads, if no node uses what came later.

    Exporters import the newest version they know, whichever of its operators they use, if any.
    """
    newest = None if target.runtime is None else target.runtime.ml
    imports = [entry for _, entry in imports_of(model, ML)]
    if newest is None or all(entry.version <= newest for entry in imports):
        return None
    used = max(entry.version for entry in imports)
    for node in all_nodes(model):
        if node.domain == ML and not _is_of_ml_version(node, used, newest):
            reason = f"{target.runtime} reads {ML} up to version {newest}, and this is of version {used}"
            return Refusal("graph", node.name, node.op_type, reason, "choose a newer version of the runtime")
    for entry in imports:
        entry.version = min(entry.version, newest)
    return None


def _is_of_ml_version(node: NodeProto, used: int, newest: int) -> bool:
    """Whether an ai.onnx.ml node means the same at an older version.

    It does if the operator is unchanged, or if the node uses nothing newer: later versions only add to operators.
    """
    at_used, at_newest = (schema_in_force(node.op_type, version, ML) for version in (used, newest))
    if at_newest is None or at_used is None:
        return at_used is at_newest
    return at_newest.since_version == at_used.since_version or (not at_newest.deprecated and has_form(node, at_newest))
