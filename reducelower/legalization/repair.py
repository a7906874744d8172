"""Repair models that runtimes run but the checker refuses, without touching any computation.

Exporters and optimizers write nodes out of order, state outdated types, omit imports, or give an IR version that does
not fit. None of this affects the numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import Any

from onnx import IR_VERSION, GraphProto, ModelProto, NodeProto, helper

from reducelower.given import AnyModel, take
from reducelower.legalization.run import run
from reducelower.legalization.versions import ir_version_of_opset, needed_ir_version, release_initializers
from reducelower.legalization.whole.stated_types import correct_stated, listed
from reducelower.model.document import Document
from reducelower.model.functions import find_call_defect
from reducelower.model.graph import graphs, read_from_outside, subgraphs, walk
from reducelower.model.schemas import DEFAULT_DOMAINS, opset_of, plain_domain
from reducelower.model.text import counted
from reducelower.model.validate import find_defect
from reducelower.model.written_for import written_for
from reducelower.options import Settings, Target

__all__ = ["Repaired", "repair"]


@dataclass(frozen=True)
class Repaired:
    """A repaired model.

    Attributes:
        model: the model, in the form of the one given.
        done: one sentence per repair; empty if nothing had to be done.
    """

    model: Any
    done: tuple[str, ...]


_LONG = "ai.onnx"
"""The other spelling of the default domain."""


def repair(model: AnyModel, *, in_place: bool = False) -> Repaired:
    """Repair a model that runtimes run but the checker refuses, and say what was done.

    Nodes are put in order, each after those it reads from. A graph in which a value is defined twice keeps its
    order. Missing opset imports are added, and nodes of the domain ``ai.onnx`` are written as the import has it.
    The IR version is adjusted. Stated types of computed values that contradict inference, and of initializers that
    hold something else, are dropped, and outputs without a type get one. Graphs without a name get one, and nodes
    with equal names, which onnxruntime does not load, get different ones. Nodes in the form that their operator has
    at another opset version, such as ReduceSum with axes as an attribute at opset 13, are moved to that of the import;
    local functions are left as they are. All else stays as it is. A valid model that runs comes back unchanged.

    Args:
        model: any model, in any form; see `reducelower.legalize`.
        in_place: change and return the model itself rather than a copy.

    Returns:
        The model and what was done. It may still be invalid: what cannot be repaired stays as it is.

    Raises:
        TypeError: it is not a model.
        UnreadableModelError: a file is missing, or it or the bytes are no model.

    Example:
        >>> import onnx, reducelower
        >>> text = '<ir_version: 8, opset_import: ["": 18]> g (float[3] x) => (float[3] y) { y = Neg (z) z = Abs (x) }'
        >>> mended = reducelower.repair(onnx.parser.parse_model(text))
        >>> [node.op_type for node in mended.model.graph.node]
        ['Abs', 'Neg']
        >>> mended.done
        ("put 2 nodes of graph 'g' in order, each behind those it reads from",)
    """
    given = take(model, in_place=in_place)
    message = given.document.message
    if not message.HasField("graph") or find_call_defect(message):
        return Repaired(model, ())  # inference would recurse without end
    mended = message
    if not in_place:
        mended = ModelProto()
        mended.CopyFrom(message)
    mends = (
        _add_imports, _fit_ir_version, _name_graphs, _rename_duplicates, _put_in_order, _move_to_import,
        correct_stated,
    )  # fmt: skip
    done: list[str] = []
    try:
        for mend in mends:
            done += mend(mended)
    except Exception:
        if not find_defect(message):
            raise  # not the fault of a model that is damaged
    return Repaired(given.back(Document(mended)), tuple(done))


# Imports and IR version


def _add_imports(model: ModelProto) -> Iterator[str]:
    """Import the domains of nodes that lack an import."""
    yield from _spell_default_domain(model)
    imported = {plain_domain(entry.domain) for entry in model.opset_import}
    for domain in sorted({plain_domain(node.domain) for node in walk(model.graph.node)} - imported):
        version = _version_of(domain, model)
        model.opset_import.add(domain=domain, version=version)
        yield f"imported {domain or 'the default domain'} at version {version}"


def _spell_default_domain(model: ModelProto) -> Iterator[str]:
    """Spell the default domain of nodes as its import does; the checker insists on that, runtimes do not."""
    spellings = {entry.domain for entry in model.opset_import} | {function.domain for function in model.functions}
    if _LONG in spellings:
        return
    spelled = [node for node in walk(model.graph.node) if node.domain == _LONG]
    for node in spelled:
        node.domain = ""
    if spelled:
        yield f"replaced the domain {_LONG!r} of {counted(len(spelled), 'node')} by '', as the opset import spells it"


def _version_of(domain: str, model: ModelProto) -> int:
    if not domain and (imported := opset_of(model)):
        return imported
    # The newest version released with the IR version; 1 for a domain that onnx does not know.
    name = domain or "ai.onnx"
    opsets = [opset for (of, opset), needed in helper.OP_SET_ID_VERSION_MAP.items() if of == name]
    fitting = [opset for opset in opsets if helper.OP_SET_ID_VERSION_MAP[name, opset] <= model.ir_version]
    return max(fitting or opsets[:1] or [1])


def _fit_ir_version(model: ModelProto) -> Iterator[str]:
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


# Names


def _name_graphs(model: ModelProto) -> Iterator[str]:
    """Name graphs without a name, which the checker refuses, after the attribute that holds them."""
    unnamed = [(path, graph) for path, graph in graphs(model) if not graph.name]
    for path, graph in unnamed:
        graph.name = path.rpartition(".")[2]  # the attribute's name, or "graph"
    if unnamed:
        yield "named the graphs that had no name"


def _rename_duplicates(model: ModelProto) -> Iterator[str]:
    """Rename nodes that have the name of an earlier node, since onnxruntime does not load such a model."""
    renamed = []
    for _, graph in graphs(model):
        names = {node.name for node in graph.node}
        seen: set[str] = set()
        for node in graph.node:
            if node.name and node.name in seen:
                renamed.append(node.name)
                node.name = next(name for number in count(2) if (name := f"{node.name}_{number}") not in names)
                names.add(node.name)
            seen.add(node.name)
    if renamed:
        yield f"renamed nodes that were called like others: {listed(renamed)}"


# Order


def _put_in_order(model: ModelProto) -> Iterator[str]:
    holders = [(f"graph {model.graph.name!r}", model.graph)]
    while holders:
        path, holder = holders.pop(0)
        order = _order(holder.node, _not_computed(holder))
        if order is not None:
            nodes = [NodeProto.FromString(holder.node[index].SerializeToString()) for index in order]
            moved = sum(index != place for place, index in enumerate(order))
            del holder.node[:]
            holder.node.extend(nodes)
            yield f"put {moved} nodes of {path} in order, each behind those it reads from"
        for node in holder.node:
            inside = f"in {node.op_type} {node.name!r}"
            holders += [(f"graph {graph.name!r} {inside}", graph) for _, _, graph in subgraphs(node)]


def _not_computed(holder: GraphProto) -> set[str]:
    """The values of a graph that no node of it computes."""
    stored = [*holder.initializer, *(tensor.values for tensor in holder.sparse_initializer)]
    return {value.name for value in holder.input} | {tensor.name for tensor in stored}


def _order(nodes: Collection[NodeProto], not_computed: Collection[str] = ()) -> list[int] | None:
    """Positions of the nodes, each after those it reads from, otherwise stable; None if they are in order already.

    Also None if nodes form a cycle, which has no order, or if a value is defined twice, since then the order decides
    which definition a node reads.
    """
    makers: dict[str, int] = {}
    for index, node in enumerate(nodes):
        for name in filter(None, node.output):
            if name in makers or name in not_computed:
                return None
            makers[name] = index
    reads = [sorted({makers[name] for name in read_from_outside(node) if name in makers}) for node in nodes]
    if all(index > maker for index, makers_read in enumerate(reads) for maker in makers_read):
        return None
    readers: dict[int, list[int]] = {}
    for index, makers_read in enumerate(reads):
        for maker in makers_read:
            readers.setdefault(maker, []).append(index)
    missing = [*map(len, reads)]
    ready = [index for index, count_missing in enumerate(missing) if not count_missing]  # sorted, so it is a heap
    order: list[int] = []
    while ready:
        order.append(heappop(ready))
        for reader in readers.get(order[-1], ()):
            missing[reader] -= 1
            if not missing[reader]:
                heappush(ready, reader)
    return order if len(order) == len(reads) else None


# Nodes of another opset version


def _move_to_import(model: ModelProto) -> Iterator[str]:
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
