"""The opset and IR versions of a run: those of the source, of the target, and of the result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableSequence
from dataclasses import replace
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING

from onnx import GraphProto, ModelProto, OperatorSetIdProto, TensorProto, helper

from reducelower.errors import Refusal
from reducelower.legalization.written_for import has_form
from reducelower.model.document import Document
from reducelower.model.graph import all_nodes, graphs
from reducelower.model.schemas import DEFAULT_DOMAINS, latest_opset, parse_element_type, schema_in_force, versions
from reducelower.model.skeleton import DEFAULTS_SINCE
from reducelower.options import IrVersion, Target
from reducelower.text import counted

if TYPE_CHECKING:
    from reducelower.runtimes import Runtime

__all__ = [
    "default_imports", "fit_ml_version", "imports_of", "ir_version_of_opset", "needed_ir_version",
    "release_initializers", "remove_imports", "set_ir_version", "with_opset",
]  # fmt: skip

_NAME, _VERSION = attrgetter("name"), attrgetter("version")

ML = "ai.onnx.ml"
"""The domain of classical machine learning, which has versions of its own."""


def imports_of(
    model: ModelProto, domain: str
) -> Iterator[tuple[MutableSequence[OperatorSetIdProto], OperatorSetIdProto]]:
    """The imports of a domain by a model and its functions, each with the list that contains it."""
    for imports in (model.opset_import, *(function.opset_import for function in model.functions)):
        yield from ((imports, entry) for entry in imports if entry.domain == domain)


def remove_imports(model: ModelProto, domains: Iterable[str]) -> tuple[str, ...]:
    """Remove the imports of domains of which nothing remains; return a sentence for each that was imported."""
    notes = []
    for domain in sorted(domains):
        imported = list(imports_of(model, domain))
        for imports, entry in imported:
            imports.remove(entry)
        if imported:
            notes.append(f"Nothing of {domain} remains.")
    return tuple(notes)


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
    opset, *others = sorted(set(map(_VERSION, imports)))
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


def fit_ml_version(model: ModelProto, runtime: Runtime) -> Refusal | None:
    """Lower ai.onnx.ml imports to the newest version that the runtime reads, if no node uses what came later.

    Exporters import the newest version they know, whichever of its operators they use, if any.
    """
    newest = runtime.ml
    imports = [entry for _, entry in imports_of(model, ML)]
    if newest is None or all(entry.version <= newest for entry in imports):
        return None
    used = max(entry.version for entry in imports)
    for node in all_nodes(model):
        older = schema_in_force(node.op_type, newest, ML) if node.domain == ML else None
        # Later versions only add to operators.
        if node.domain == ML and (older is None or older.deprecated or not has_form(node, older)):
            reason = f"{runtime} reads {ML} up to version {newest}, and this is of version {used}"
            return Refusal("graph", node.name, node.op_type, reason, "choose a newer version of the runtime")
    for entry in imports:
        entry.version = min(entry.version, newest)
    return None


# IR versions


@cache
def ir_version_of_opset(opset: int) -> int:
    """The IR version of the onnx release that introduced an opset version (`onnx.helper.VERSION_TABLE`).

    Opset versions 2 to 4 had no release of their own and count as part of the next one.
    """
    releases = helper.OP_SET_ID_VERSION_MAP.items()
    ir_versions = [version for (domain, number), version in releases if domain == "ai.onnx" and number >= opset]
    return min(ir_versions, default=max(version for _, version in releases))


def release_initializers(model: ModelProto, before: int) -> str:
    """Take initializers out of the graph inputs of a model that had an IR version below 4; say so if there were any.

    Before IR version 4, an initializer had to be an input, and was a constant. Since then, such an input is a default
    that callers may override, and runtimes fold and prepack nothing that is computed from it.
    """
    if not before < DEFAULTS_SINCE <= model.ir_version:
        return ""
    initializers = {tensor.name for tensor in model.graph.initializer}
    kept = [value for value in model.graph.input if value.name not in initializers]
    count = len(model.graph.input) - len(kept)
    if not count:
        return ""
    del model.graph.input[:]
    model.graph.input.extend(kept)
    left = f"{counted(count, 'initializer')} left the graph inputs"
    return f"{left}: from IR version {DEFAULTS_SINCE} on they would be defaults that callers may override"


def set_ir_version(
    model: ModelProto, source: Document, asked: IrVersion, own_opset: int, target: Target
) -> Refusal | None:
    """State the IR version of the result; refuse contents that need a newer one than asked for or than is read.

    `source` is the model before any edit, of opset version `own_opset`. If that does not change, nothing says that the
    result is for older or newer readers.
    """
    old, goal, runtime = model.ir_version, target.opset or own_opset, target.runtime
    version = usual = old if goal == own_opset else ir_version_of_opset(goal)
    if asked != "auto":
        version = old if asked == "keep" else int(asked)
    elif usual < old or usual == old < DEFAULTS_SINCE:
        version = max(usual, min(needed_ir_version(model, source), max(old, DEFAULTS_SINCE)))
    newest = version if runtime is None or runtime.ir_version is None else min(version, runtime.ir_version)
    model.ir_version = version
    needed = needed_ir_version(model, source) if newest < version or isinstance(asked, int) else 0
    model.ir_version = newest
    if newest < min(version, needed):
        reason = f"{runtime} reads IR versions up to {newest}, and the model uses what came with IR version {needed}"
        return Refusal("graph", "", "", reason, "choose a newer version of the runtime")
    if isinstance(asked, int) and asked < needed:
        reason = f"it cannot have IR version {asked}, since it uses what came with IR version {needed}"
        return Refusal("graph", "", "", reason, f"--ir-version {needed}, or a newer one")
    return None


# The IR version that contents need. Source: the list of IR versions in onnx.proto.

_OLDEST = 3

_SINCE: Mapping[object, int] = {
    number: version
    for version, names in {
        9: ("FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ"),
        10: ("UINT4", "INT4"),
        11: ("FLOAT4E2M1",),
        12: ("FLOAT8E8M0",),
        13: ("UINT2", "INT2"),
    }.items()
    for name, number in TensorProto.DataType.items()
    if name in names
} | {
    ("Graph", 14): 5,  # quantization_annotation
    ("Graph", 15): 5,  # sparse_initializer
    ("Model", 20): 7,  # training_info
    ("Model", 25): 8,  # functions
    ("Attribute", 14): 8,  # tp
    ("Attribute", 15): 8,  # type_protos
    ("Type", 9): 8,  # optional_type
    ("Node", 8): 10,  # overload
    ("Model", 26): 11,  # configuration
}
"""The IR version that brought an element type, or a field of onnx.proto (see `Columns.fields`)."""


def needed_ir_version(model: ModelProto, source: Document) -> int:
    """The oldest IR version that allows the contents of a model, apart from its operators.

    `source` is the model before any edit, which adds initializers, but no other contents that a newer version brought.

    Defaults that callers may override need IR version 4; before, the initializer of an input is a constant.

    Metadata, and types stated in functions, came with IR version 10. Older readers skip them, so they do not count.
    """
    held = {*source.columns.fields, *source.columns.element_types}
    needed = [_OLDEST, *map(_SINCE.__getitem__, held & _SINCE.keys())]
    may_be_overridden = model.ir_version >= DEFAULTS_SINCE and ("Graph", 5) in held
    if may_be_overridden or not all(_lists_initializers(graph) for _, graph in graphs(model)):
        needed.append(DEFAULTS_SINCE)
    return max(needed)


def _lists_initializers(graph: GraphProto) -> bool:
    """Whether every initializer of a graph is one of its inputs."""
    return {*map(_NAME, graph.initializer)} <= {*map(_NAME, graph.input)}
