"""A rule book as rewrite rules of onnxscript: the engine expands one node at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import onnx_ir as ir
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TypeProto, ValueInfoProto
from onnxscript.rewriter import MatchContext, MatchResult, pattern

from reducelower.api import legalize
from reducelower.errors import ConversionError
from reducelower.ir.light import lighten
from reducelower.model.graph import subgraphs
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.options import Target
from reducelower.rulebook import RuleBook, RuleError, load_book
from reducelower.types import GraphKey, Inference, function_key

if TYPE_CHECKING:
    from reducelower.options import Book

__all__ = ["inferred_types", "rewrite_rules"]

_SMALL = 1024
"""Elements up to which a constant may be axes, and not weights."""

_WITHOUT_STANDALONE_INITIALIZERS = 3
"""IR version at which the engine writes constants as nodes, which a rewrite can put anywhere."""


def rewrite_rules(book: Book = "spec", *, without_types: Sequence[str] = ()) -> pattern.RewriteRuleSet:
    """A rule book as rules for `onnxscript.rewriter.rewrite`.

    Every node that `reducelower.expand` would replace with that book is replaced by the rule's body, at the model's
    opset version and in whatever form the node has its axes. A node that cannot be replaced stays as it is; an
    `onnxscript.rewriter.MatchingTracer` shows what is in the way.

    Example::

        onnxscript.rewriter.rewrite(model, pattern_rewrite_rules=reducelower.ir.rewrite_rules("stable"))

    Args:
        book: ``spec``, ``stable``, ``core``, a folder of rules, or a rule book.
        without_types: element types that nothing added may use.

    Returns:
        A rule for each Reduce operator of a shipped book, or for every operator of a book of your own. Like all of
        onnxscript's rules they are to be used by one thread at a time.

    Raises:
        RuleError: there is no such book.
    """
    found = book if isinstance(book, RuleBook) else load_book(book)
    rule: Any = _Expansion.rule  # it has no types
    return pattern.RewriteRuleSet([rule(op_type, found, frozenset(without_types)) for op_type in found.reductions])


class _Expansion(pattern.RewriteRuleClassBase):
    """The rule for one operator: `check` expands the node, and `rewrite` puts the result in place."""

    def __init__(self, op_type: str, book: RuleBook, without_types: frozenset[str]) -> None:
        super().__init__(f"{book.name}/{op_type}")
        self._op_type = op_type
        self._book = book
        self._target = Target(None, frozenset({op_type}), without_types)
        self._expanded = GraphProto()
        self._types: Mapping[str, TypeProto] | None = None

    def setup(self) -> None:
        """Drop what is known about the last graph; the rewriter calls this for each graph."""
        self._types = None

    def pattern(self, op: Any, data: Any) -> Any:
        """Any node of the operator."""
        return getattr(op, self._op_type)(
            data, _allow_other_inputs=True, _allow_other_attributes=True, _outputs=["reduced"]
        )

    def check(self, op: MatchContext, *_: Any, **bound: Any) -> MatchResult:
        """Expand the node by itself; fail with the reason if it is refused."""
        result = MatchResult()
        context, node = op, bound["reduced"].producer()
        assert node is not None
        opset = _opset(context)
        if opset is None:
            return result.fail("the opset version of the default domain is not known here", node)
        try:
            legal = legalize(self._lone(context.model, node, opset), self._target, rules=self._book, ir_version="keep")
        except (ConversionError, RuleError) as error:
            return result.fail(str(error), node)
        self._expanded = legal.model.graph
        if any(True for made in self._expanded.node for _ in subgraphs(made)):
            return result.fail("its replacement branches on axes known at run time; use ExpandPass", node)
        return result

    def rewrite(self, op: Any, reduced: ir.Value, **_: Any) -> ir.Value:
        """Put the expanded nodes in place."""
        node = reduced.producer()
        assert node is not None
        values: dict[str, ir.Value | None] = {"": None}
        values.update((value.name or "", value) for value in node.inputs if value is not None)
        types = {info.name: info for info in self._expanded.value_info}
        for made in self._expanded.node:
            _append(op, made, values, types, node.outputs[0].name or "")
        result = values[node.outputs[0].name or ""]
        assert result is not None
        result.type, result.shape = reduced.type, reduced.shape
        return result

    def _lone(self, model: ir.Model, node: ir.Node, opset: int) -> ModelProto:
        """A model of one node, with everything the surrounding model knows about its inputs."""
        alone = ModelProto(ir_version=_WITHOUT_STANDALONE_INITIALIZERS)
        alone.opset_import.add(version=opset)
        alone.graph.node.append(ir.serde.serialize_node(node))
        for value in {value.name: value for value in node.inputs if value is not None}.values():
            alone.graph.input.append(self._info(model, value))
            tensor = value.const_value
            if tensor is not None and tensor.size <= _SMALL and not value.is_graph_input():
                held = ir.serde.serialize_tensor(ir.Tensor(tensor.numpy(), dtype=tensor.dtype))
                held.name = value.name or ""
                alone.graph.initializer.append(held)
        alone.graph.output.append(self._info(model, node.outputs[0]))
        return alone

    def _info(self, model: ir.Model, value: ir.Value) -> ValueInfoProto:
        """What is known about a value, by inference if the model does not state it."""
        info = ir.serde.serialize_value(value)
        if value.type is None and value.name:
            if self._types is None:
                self._types = inferred_types(model)
            if value.name in self._types:
                info.type.CopyFrom(self._types[value.name])
        return info


def _opset(context: MatchContext) -> int | None:
    """The default-domain opset version at a node; None if unknown.

    A subgraph does not know its enclosing graph, so for subgraphs the version has to be the same everywhere in the
    model.
    """
    around, model = context.graph_or_function, context.model
    if isinstance(around, ir.Function):
        return _default_opset(around)
    if around is model.graph:
        return _default_opset(model.graph)
    found = {_default_opset(model.graph), *map(_default_opset, model.functions.values())} - {None}
    return found.pop() if len(found) == 1 else None


def _default_opset(holder: ir.Graph | ir.Function) -> int | None:
    return next((version for domain, version in holder.opset_imports.items() if domain in DEFAULT_DOMAINS), None)


def _append(
    op: Any, made: NodeProto, values: dict[str, ir.Value | None], types: Mapping[str, ValueInfoProto], reduced: str
) -> None:
    """Write a node of the expansion with the builder of the rewriter.

    What the node yields is added to the values, which go by the names that the expansion has for them, as their types
    do. The name of the value that the replaced node yields, `reduced`, makes other names unique in the model.
    """
    attributes = {attribute.name: ir.serde.deserialize_attribute(attribute) for attribute in made.attribute}
    inputs = [values[name] for name in made.input]
    names = [name if name.startswith(reduced) else f"{reduced}/{name.lstrip('/')}" for name in made.output]
    found = getattr(op, made.op_type)(*inputs, _domain=made.domain, _outputs=names, **attributes)
    for name, value in zip(made.output, found if isinstance(found, Sequence) else (found,), strict=True):
        if name in types:
            ir.serde.deserialize_value_info_proto(types[name], value)
        values[name] = value
        node = value.producer()
        node.name = made.name or None
        node.doc_string = made.doc_string or None
        node.metadata_props.update((entry.key, entry.value) for entry in made.metadata_props)


def inferred_types(model: ir.Model) -> Mapping[str, TypeProto]:
    """The types of a model's values by name, without names that graphs share for values of different types."""
    proto = lighten(model).proto
    inference = Inference(lambda: proto)
    found: dict[str, TypeProto] = {}
    contradicting: set[str] = set()

    def collect(holder: GraphProto | FunctionProto, key: GraphKey) -> None:
        for name, known in inference.types(key).items():
            if found.setdefault(name, known) != known:
                contradicting.add(name)
        for index, node in enumerate(holder.node):
            for number, _, inner in subgraphs(node):
                collect(inner, (*key, index, number))

    collect(proto.graph, ())
    for number, function in enumerate(proto.functions):
        collect(function, function_key(number))
    return {name: known for name, known in found.items() if name not in contradicting}
