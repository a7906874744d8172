"""Fix named sizes in the model itself: shapes follow, and what computed with them becomes constant.

Exporters also name sizes after other sizes, such as ``2*seq``. If all names in such a size are set, it is computed too.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from onnx import ModelProto, numpy_helper

from reducelower.errors import Refusal
from reducelower.legalization.dead_code import remove_named, remove_unused
from reducelower.legalization.edits import REMOVED, Edit
from reducelower.legalization.run import ground_of
from reducelower.legalization.whole import Changed
from reducelower.model.document import Document
from reducelower.model.graph import graphs, read_by, read_outside_nodes
from reducelower.model.numbers import Array
from reducelower.model.schemas import DEFAULT_DOMAINS, opset_of
from reducelower.model.skeleton import DEFAULTS_SINCE
from reducelower.model.value_info import set_sizes
from reducelower.options import Settings
from reducelower.scope.graph import GraphScope
from reducelower.text import expression

__all__ = ["with_sizes"]

_READS_SIZES = ("Shape", "Size")


def with_sizes(document: Document, sizes: Mapping[str, int], settings: Settings) -> Changed:
    """The model with these sizes in place of their names; refused if a name is that of no size in the model."""
    made = document.copy()
    values = [value for _, graph in graphs(made) for value in (*graph.input, *graph.output, *graph.value_info)]
    named = {dim.dim_param for value in values for dim in value.type.tensor_type.shape.dim} - {""}
    names = named.union(*map(_names, named))
    if unknown := sorted(sizes.keys() - names):
        known = f"its sizes are called {', '.join(sorted(names))}"
        hint = known if names else "all its sizes are numbers, or have no name"
        reason = f"no size of the model is called {unknown[0]!r}"
        return Changed(document, refusals=(Refusal("", "", "", reason, hint),))
    set_sizes(values, sizes)
    if made.ir_version >= DEFAULTS_SINCE:  # else every initializer has to be an input as well
        _fold(made, settings)
    return Changed(Document(made), (f"Sizes were set: {', '.join(f'{name}={size}' for name, size in sizes.items())}.",))


def _names(size: str) -> set[str]:
    try:
        return {node.id for node in ast.walk(expression(size)) if isinstance(node, ast.Name)}
    except (SyntaxError, ValueError, RecursionError):
        return set()


def _fold(model: ModelProto, settings: Settings) -> None:
    """Store as initializers what the main graph computes from sizes, as far as it is constant now."""
    graph, opset, source = model.graph, opset_of(model), ModelProto()
    source.CopyFrom(model)
    ground = ground_of(Document(source), opset, settings)
    scope = GraphScope(ground, graph, opset)
    edit = Edit(scope, drops_operands=True)
    constants: dict[str, Array] = {}
    kept = set(read_outside_nodes(graph))
    for place, node in enumerate(graph.node):
        reads_sizes = node.op_type in _READS_SIZES or not constants.keys().isdisjoint(node.input)
        if node.domain not in DEFAULT_DOMAINS or not reads_sizes or not kept.isdisjoint(node.output):
            continue
        values = {name: scope.constant(name) for name in node.output if name}
        known = {name: value.array for name, value in values.items() if value is not None}
        if known.keys() == values.keys():
            constants |= known
            edit.rewrites[place] = REMOVED
    remove_unused([edit])
    edit.splice()
    ground.clear_caches()
    read = {name for node in graph.node for name in read_by(node)}
    graph.initializer.extend(numpy_helper.from_array(constants[name], name) for name in sorted(constants.keys() & read))
    remove_named(graph.value_info, constants)
