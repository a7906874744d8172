"""Fix named sizes in the model itself: shapes follow, and what computed with them becomes constant.

Exporters also name sizes after other sizes, such as ``2*seq``. If all names in such a size are set, it is computed too.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy

from onnx import ModelProto, TypeProto, numpy_helper

from reducelower.errors import Refusal
from reducelower.legalization.dead_code import remove_named, remove_unused
from reducelower.legalization.edits import Edit
from reducelower.legalization.run import ground_of
from reducelower.legalization.whole import Changed
from reducelower.model.document import Document
from reducelower.model.graph import graphs, read_by, read_outside_nodes
from reducelower.model.schemas import DEFAULT_DOMAINS, opset_of
from reducelower.model.skeleton import DEFAULTS_SINCE
from reducelower.model.text import expression
from reducelower.options import Settings
from reducelower.scope.graph import GraphScope

__all__ = ["with_sizes"]

_READS_SIZES = ("Shape", "Size")


def with_sizes(document: Document, sizes: Mapping[str, int], settings: Settings) -> Changed:
    """The model with these sizes in place of their names; refused if a name is that of no size in the model."""
    made = document.copy()
    stated = [dim for tensor in _types(made) for dim in tensor.tensor_type.shape.dim if dim.dim_param]
    names = {dim.dim_param for dim in stated}.union(*(_names(dim.dim_param) for dim in stated))
    if unknown := sorted(sizes.keys() - names):
        known = f"its sizes are called {', '.join(sorted(names))}"
        hint = known if names else "all its sizes are numbers, or have no name"
        reason = f"no size of the model is called {unknown[0]!r}"
        return Changed(document, refusals=(Refusal("graph", "", "", reason, hint),))
    for dim in stated:
        size = _size(dim.dim_param, sizes)
        if size is not None:
            dim.dim_value = size
    sized = Document(made)
    if made.ir_version >= DEFAULTS_SINCE:  # else every initializer has to be an input as well
        _fold(sized, settings)
    return Changed(sized, (f"Sizes were set: {', '.join(f'{name}={size}' for name, size in sizes.items())}.",))


def _types(model: ModelProto) -> Iterator[TypeProto]:
    """The stated types of tensors and of what sequences hold."""
    values = [value for _, graph in graphs(model) for value in (*graph.input, *graph.output, *graph.value_info)]
    for value in values:
        value_type = value.type
        while value_type.WhichOneof("value") in ("sequence_type", "optional_type"):
            inner = value_type.sequence_type if value_type.HasField("sequence_type") else value_type.optional_type
            value_type = inner.elem_type
        if value_type.HasField("tensor_type"):
            yield value_type


def _names(size: str) -> set[str]:
    try:
        return {node.id for node in ast.walk(expression(size)) if isinstance(node, ast.Name)}
    except (SyntaxError, ValueError, RecursionError):
        return set()


def _size(name: str, sizes: Mapping[str, int]) -> int | None:
    """The number for a named size or a calculation with named sizes; None if a name in it is not set."""
    if name in sizes:
        return sizes[name]
    try:
        size = _calculated(expression(name), sizes)
    except (SyntaxError, ValueError, RecursionError, ZeroDivisionError):
        return None
    return size if size is not None and size >= 0 else None


_OPERATIONS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Mult: operator.mul,
    ast.Sub: operator.sub,
}


def _calculated(node: ast.expr, sizes: Mapping[str, int]) -> int | None:
    if isinstance(node, ast.Name):
        return sizes.get(node.id)
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    operation = _OPERATIONS.get(type(node.op)) if isinstance(node, ast.BinOp) else None
    if operation is None or not isinstance(node, ast.BinOp):
        return None
    left, right = _calculated(node.left, sizes), _calculated(node.right, sizes)
    return None if left is None or right is None else operation(left, right)


def _fold(document: Document, settings: Settings) -> None:
    """Store as initializers what the main graph computes from sizes, as far as it is constant now."""
    model = document.message
    graph, opset = model.graph, opset_of(model)
    ground = ground_of(Document(deepcopy(model)), opset, settings)
    scope = GraphScope(ground, graph, opset)
    edit = Edit(scope, drops_operands=True)
    constant: set[str] = set()
    kept = set(read_outside_nodes(graph))
    for place, node in enumerate(graph.node):
        reads_sizes = node.op_type in _READS_SIZES or not constant.isdisjoint(node.input)
        outputs = [name for name in node.output if name]
        if node.domain not in DEFAULT_DOMAINS or not reads_sizes or not kept.isdisjoint(outputs):
            continue
        if all(scope.constant(name) is not None for name in outputs):
            constant.update(outputs)
            edit.replaced[place] = []
    read = {name for place, node in enumerate(graph.node) if place not in edit.replaced for name in read_by(node)}
    values = {name: scope.constant(name) for name in sorted(constant & read)}
    remove_unused([edit])
    edit.splice()
    graph.initializer.extend(
        numpy_helper.from_array(value, name) for name, value in values.items() if value is not None
    )
    remove_named(graph.value_info, constant)
