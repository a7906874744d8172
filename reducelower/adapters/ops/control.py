"""If, Loop, Scan, SequenceMap and optionals at their boundaries; not text, since graphs inside them are edited.

The engine makes these graphs legal.
OptionalHasElement and OptionalGetElement take what is no optional since opset 18. SequenceMap becomes a Loop around its
graph, and not the function body in its schema, which takes nothing from around the graph.

Sources: the pages of If (1, 11), Loop (1, 11), Scan (8, 9, 11), OptionalHasElement (15, 18), OptionalGetElement (15,
18), SequenceMap (17).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, TypeProto, ValueInfoProto, helper

from reducelower.adapters.builder import Writer
from reducelower.adapters.decompose import expresses
from reducelower.adapters.registry import Outcome, lowers, raises
from reducelower.errors import RefusedError, UnknownValueError
from reducelower.model.attributes import copy_marks, make_node, set_attribute, value_of
from reducelower.model.value_info import may_be_of_one_shape, sizes, without_made_up_symbols
from reducelower.rulebook.questions import from_the_front


@lowers("If", 11)
def _lower_if(op: Writer) -> None:
    """Branches had to give the same shapes; runtimes never asked, so only differences that are known are refused.

    Shape inference takes what it knows of one branch for both, and so has to know nothing where they are not alike.
    """
    branches = {
        attribute.name: attribute.g for attribute in op.node.attribute if attribute.type == AttributeProto.GRAPH
    }
    unlike = []
    for place, results in enumerate(zip(*(graph.output for graph in branches.values()), strict=True)):
        left, right = (
            sizes(value.type if sizes(value.type) is not None else op.scope.type_inside(op.node, number, value.name))
            for number, value in enumerate(results)
        )
        if left == right:
            continue
        condition = op.constant_input(0)
        if condition is not None:  # the branch that is not taken may as well be the other
            chosen = branches["then_branch" if condition.reshape(-1)[0] else "else_branch"]
            for graph in branches.values():
                if graph is not chosen:
                    op.scope.after_subgraphs(partial(graph.CopyFrom, chosen))
            return
        if left is not None and right is not None and not may_be_of_one_shape(left, right):
            raise RefusedError(
                f"its branches give different shapes: {results[0].name!r} and {results[1].name!r}",
                "opset 11 is the oldest that allows it",
            )
        unlike.append(place)
    if unlike and op.scope.target_opset >= _TILES_BY_COUNTS:
        _leave_shapes_unknown(op, branches, unlike)


_TILES_BY_COUNTS = 6
"""The oldest opset version whose Tile takes a count per axis."""


def _leave_shapes_unknown(op: Writer, branches: Mapping[str, GraphProto], places: Sequence[int]) -> None:
    """Reshape results of branches to their own shapes, repeated a number of times that is 1 where it is read.

    The number depends on the condition, so that it and the length of the shape are known at run time only. What
    branches hold is legal by now, so these nodes are ones that every target from opset 6 on has.
    """
    for number, (name, graph) in enumerate(branches.items()):
        op.nodes = []
        taken = op.input(0) if name == "then_branch" else op.add("Not", op.input(0), tail="is_not")
        once = op.add("Reshape", op.add("Cast", taken, to=TensorProto.INT64), op.number(-1), tail="once")
        for place in places:
            result = graph.output[place]
            element_type = result.type.tensor_type.elem_type or _element_type(op, number, result.name)
            shape = op.add("Tile", op.add("Shape", result.name), once, tail="its_shape")
            result.name = op.add("Reshape", result.name, shape, tail="result")
            result.type.Clear()
            if element_type:
                result.type.tensor_type.elem_type = element_type
        graph.node.extend(op.nodes)


def _element_type(op: Writer, number: int, name: str) -> int:
    """The element type of a value in a branch; zero if unknown."""
    known = op.scope.type_inside(op.node, number, name)
    return 0 if known is None else known.tensor_type.elem_type


@lowers("Loop", 11)
def _lower_loop(op: Writer) -> None:
    """At least one value had to be carried from iteration to iteration: a number that nothing reads will do."""
    if len(op.node.input) > 2:
        return
    body, carried, yielded = _body(op.node), op.fresh("carried"), op.fresh("carried_on")
    for values, name, place in ((body.input, carried, len(body.input)), (body.output, yielded, 1)):
        kept = list(values)[place:]
        del values[place:]
        added = values.add(name=name)
        added.type.tensor_type.elem_type = TensorProto.FLOAT
        added.type.tensor_type.shape.SetInParent()
        values.extend(kept)
    body.node.append(make_node("Identity", [carried], [yielded]))
    while len(op.node.input) < 2:
        op.node.input.append("")
    op.node.input.append(op.scope.add_constant(np.array(0, np.float32), "zero"))
    # It has a name, because onnxruntime crashes on a state that has none.
    op.node.output.insert(0, op.fresh("last_carried"))


@lowers("Scan", 16)
def _state_results(op: Writer) -> None:
    """Let the body state what it yields: onnxruntime wants to know the ranks, which older nodes tell less of."""
    body = _body(op.node)
    for value in body.output:
        known = op.scope.type_inside(op.node, 0, value.name) if sizes(value.type) is None else None
        if sizes(known) is not None and known is not None:
            value.type.CopyFrom(without_made_up_symbols(known))


@lowers("Scan", 11)
def _lower_scan(op: Writer) -> None:
    """Axes were counted from the front."""
    count = int(op.attribute("num_scan_inputs"))
    body = _body(op.node)
    inputs = list(op.node.input)[len(op.node.input) - count :]
    states = len(op.node.input) - count

    def output_rank(index: int) -> int:
        known = sizes(body.output[states + index].type)
        return op.scope.needed_rank(op.node.output[states + index]) if known is None else len(known) + 1

    _count_from_the_front(op.node, "scan_input_axes", lambda index: op.scope.needed_rank(inputs[index]))
    _count_from_the_front(op.node, "scan_output_axes", output_rank)


def _count_from_the_front(node: NodeProto, attribute: str, rank_of: Callable[[int], int]) -> None:
    axes = value_of(node, attribute, ())
    if any(axis < 0 for axis in axes):
        counted = [axis if axis >= 0 else from_the_front(axis, rank_of(index)) for index, axis in enumerate(axes)]
        set_attribute(node, attribute, counted)


@raises("Scan", 9)
def _raise_batches(op: Writer) -> Outcome:
    """There was a batch axis in front of everything: another Scan goes along it, with the old one as its body."""
    if op.input(0):
        raise RefusedError("it uses sequence_lens, which Scan does not have since opset 9", "stay at opset 8")
    body = _body(op.node)
    count = int(op.attribute("num_scan_inputs"))
    states = len(op.node.input) - 1 - count
    batch = GraphProto(name=f"{body.name or op.stem}_batch")
    inner = NodeProto(op_type="Scan", name=op.fresh("one"))
    for attribute in op.node.attribute:
        inner.attribute.add().CopyFrom(attribute)
        if attribute.name == "directions":
            inner.attribute[-1].name = "scan_input_directions"
    for values, stated, names, tail in (
        (body.input, batch.input, inner.input, "in"),
        (body.output, batch.output, inner.output, "out"),
    ):
        for index, value in enumerate(values):
            names.append(_one_of_batch(stated.add(), value.type, op.fresh(tail), index >= states))
    batch.node.append(inner)
    outer = make_node("Scan", list(op.node.input)[1:], list(op.node.output), body=batch, num_scan_inputs=states + count)
    copy_marks(op.node, outer)
    # What the body holds is made legal where it stands, and is not to be taken for nodes of opset 9 meanwhile.
    del _body(_body(outer).node[0]).node[:]
    op.scope.after_subgraphs(lambda: _body(_body(outer).node[0]).CopyFrom(body))
    return [outer]


def _body(node: NodeProto) -> GraphProto:
    return next(attribute.g for attribute in node.attribute if attribute.name == "body")


def _one_of_batch(value: ValueInfoProto, inner: TypeProto, name: str, is_scanned: bool) -> str:
    """State the type of one element of a batch: what the inner Scan sees, with its sequence in front."""
    value.name = name
    tensor = value.type.tensor_type
    tensor.elem_type = inner.tensor_type.elem_type
    if inner.tensor_type.HasField("shape"):
        tensor.shape.SetInParent()
        if is_scanned:
            tensor.shape.dim.add()
        tensor.shape.dim.extend(inner.tensor_type.shape.dim)
    return name


def _is_optional(op: Writer) -> bool:
    name = op.input(0)
    found = op.scope.type(name)
    if found is None:
        raise RefusedError(
            f"it is not known whether {name!r} is an optional, and before opset 18 only optionals are taken",
            "opset 18 is the oldest that takes others",
        )
    return bool(found.WhichOneof("value") == "optional_type")


@lowers("OptionalHasElement", 18)
@expresses("OptionalHasElement", opset=15)
def _has_element(op: Writer) -> Outcome:
    """A tensor is there; what is not given is not."""
    given = bool(op.node.input) and bool(op.input(0))
    if given and _is_optional(op):
        return None
    return op.yields("Identity", op.constant(given, TensorProto.BOOL, "is_there" if given else "is_not_there"))


@lowers("OptionalGetElement", 18)
@expresses("OptionalGetElement", opset=15)
def _get_element(op: Writer) -> Outcome:
    """A tensor is its own element."""
    return None if _is_optional(op) else op.yields("Identity", op.input(0))


@expresses("SequenceMap", opset=17)
def _over_places(op: Writer) -> list[NodeProto]:
    """A Loop over the places of the sequence, whose body holds the graph and collects what it yields."""
    graph, body = _body(op.node), GraphProto(name=op.stem)
    at, goes_on, still = (op.fresh(tail) for tail in ("at", "goes_on", "goes_on_still"))
    number, condition = ((name, kind, ()) for name, kind in ((at, TensorProto.INT64), (goes_on, TensorProto.BOOL)))
    body.input.extend([helper.make_tensor_value_info(*number), helper.make_tensor_value_info(*condition)])
    body.output.append(helper.make_tensor_value_info(still, TensorProto.BOOL, ()))
    before = [_taken(op, name, at, value.name) for name, value in zip(op.node.input, graph.input, strict=True)]
    after = [make_node("Identity", [goes_on], [still])]
    empty = []
    for name, value in zip(op.node.output, graph.output, strict=True):
        element_type = _element_type_of(op, value, name)
        empty.append(op.add("SequenceEmpty", tail="none", dtype=element_type))
        so_far, with_it = op.fresh("so_far"), op.fresh("with_it")
        after.append(make_node("SequenceInsert", [so_far, value.name], [with_it]))
        for values, each in ((body.input, so_far), (body.output, with_it)):
            values.append(helper.make_tensor_sequence_value_info(each, element_type, None))
    count = op.add("SequenceLength", op.input(0), tail="count")
    made = make_node("Loop", [count, "", *empty], [name or op.fresh("unread") for name in op.node.output], body=body)
    copy_marks(op.node, made)

    def fill() -> None:
        inside = _body(made)
        inside.node.extend([*before, *graph.node, *after])
        for field in ("name", "input", "output", "node"):
            graph.ClearField(field)
        inside.MergeFrom(graph)  # what else it holds, marks too

    # What the graph holds is made legal where it stands, and is not to be taken for nodes of opset 17 meanwhile.
    op.scope.after_subgraphs(fill)
    return [*op.nodes, made]


def _taken(op: Writer, name: str, at: str, given: str) -> NodeProto:
    """What hands an input of SequenceMap to its graph: an element of a sequence, or a tensor as a whole."""
    known = op.scope.type(name)
    if known is None:
        raise UnknownValueError(
            f"it is not known whether {name!r} is a sequence", op.scope.how_to_declare(name, "type")
        )
    is_sequence = known.WhichOneof("value") == "sequence_type"
    return make_node(*(("SequenceAt", [name, at]) if is_sequence else ("Identity", [name])), [given])


def _element_type_of(op: Writer, value: ValueInfoProto, name: str) -> int:
    """The element type of what the graph of SequenceMap yields for an output."""
    known = op.scope.type(name) if name and not value.type.tensor_type.elem_type else None
    found = value.type if known is None else known.sequence_type.elem_type
    if not found.tensor_type.elem_type:
        raise UnknownValueError(
            f"the element type of {value.name!r} is not known", op.scope.how_to_declare(value.name, "type")
        )
    return found.tensor_type.elem_type
