"""CumSum and CumProd where the target has none: a Scan along the axis.

Sources: the pages of CumSum (11), CumProd (26).
"""

from __future__ import annotations

from collections.abc import Mapping

from onnx import GraphProto, NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.decompose import expresses
from reducelower.adapters.ops.axes import from_the_front
from reducelower.model.attributes import make_node, value_of
from reducelower.model.numbers import FLOATS

_INT64 = TensorProto.INT64

_STEPS: Mapping[str, tuple[str, float]] = {"CumSum": ("Add", 0), "CumProd": ("Mul", 1)}
"""What combines an element with those before it, and what there is before the first."""


@expresses("CumProd", "CumSum", opset=13)
def _cumulative(op: Writer) -> list[NodeProto]:
    """The state is the result of the elements so far; exclusive yields it before the element is taken in.

    No Scan goes over data without elements (onnxruntime 1.31 dies of it), so what may be empty is asked first.
    """
    data, element_type = op.input(0), op.element_type(0)
    axes = op.constant_input(1)
    shape = op.scope.shape(data)
    if shape is not None and 0 in shape:
        op.scope.release(op.input(1))
        return op.yields("Identity", data)
    if axes is None and (shape is None or len(shape) != 1):
        return op.unless_empty(data, lambda: data, lambda: _along_the_middle(op, data, element_type), element_type)
    rank = op.scope.needed_rank(data)
    axis = 0 if axes is None else from_the_front(int(axes.reshape(-1)[0]), rank)
    op.scope.release(op.input(1))
    return op.unless_empty(data, lambda: data, lambda: _along(op, data, axis, rank, element_type), element_type)


def _along(op: Writer, data: str, axis: int, rank: int, element_type: int) -> str:
    """Append the Scan along an axis of data of a rank; returns the name of what it yields."""
    node = op.node
    step, start = _STEPS[node.op_type]
    is_exclusive = bool(value_of(node, "exclusive", 0))
    if step == "Add" and element_type in FLOATS and not is_exclusive:
        start = -0.0  # which takes nothing from the first element, not even the sign of zero
    others = op.integers([other for other in range(rank) if other != axis], "others")
    shape = op.add("Gather", op.add("Shape", data), others, tail="shape", axis=0)
    first = op.add("Expand", op.constant(start, element_type, "start"), shape, tail="first")
    reverse = int(bool(value_of(node, "reverse", 0)))
    loop = _step_graph(op, step, element_type, is_exclusive, rank - 1)
    _, result = op.add_many(
        "Scan", [first, data], ["last", "result"], body=loop, num_scan_inputs=1, scan_input_axes=[axis],
        scan_output_axes=[axis], scan_input_directions=[reverse], scan_output_directions=[reverse],
    )  # fmt: skip
    return result


def _along_the_middle(op: Writer, data: str, element_type: int) -> str:
    """The same along an axis known at run time, for data that has elements: dimensions before and behind are folded."""
    zero, one = (op.number(value) for value in (0, 1))
    shape = op.add("Shape", data)
    rank = op.add("Shape", shape, tail="rank")
    axis = op.add("Reshape", op.input(1), one, tail="axis")
    axis = op.add("Cast", axis, tail="given_axis", to=_INT64)
    axis = op.add("Where", op.add("Less", axis, zero), op.add("Add", axis, rank, tail="shifted"), axis, tail="at")
    behind = op.add("Add", axis, one, tail="next")
    sizes = [
        op.add("ReduceProd", op.add("Slice", shape, *bounds, tail=f"{tail}_sizes"), tail=tail, axes=[0])
        for tail, bounds in (("before", (zero, axis)), ("along", (axis, behind)), ("behind", (behind, rank)))
    ]
    folded = op.add("Reshape", data, op.add("Concat", *sizes, tail="folded_shape", axis=0), tail="folded")
    return op.add("Reshape", _along(op, folded, 1, 3, element_type), shape, tail="unfolded")


def _step_graph(op: Writer, step: str, element_type: int, exclusive: bool, rank: int) -> GraphProto:
    """One step of the Scan: the state and an element in, the new state and a result out."""
    before, element, after, yielded = map(op.fresh, ("before", "element", "after", "yielded"))
    nodes = [
        make_node(step, [before, element], [after]),
        make_node("Identity", [before if exclusive else after], [yielded]),
    ]
    inputs, outputs = (
        [(name, element_type, (None,) * rank) for name in names] for names in ((before, element), (after, yielded))
    )
    return op.graph("step", nodes, inputs, outputs)
