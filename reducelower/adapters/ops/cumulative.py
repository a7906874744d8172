"""CumSum and CumProd where the target has none: a Scan along the axis.

Sources: https://onnx.ai/onnx/operators/onnx__CumSum.html (11), https://onnx.ai/onnx/operators/onnx__CumProd.html (26).
"""

from __future__ import annotations

from onnx import GraphProto, NodeProto, TensorProto

from reducelower.adapters.absent import expresses
from reducelower.adapters.builder import Writer
from reducelower.adapters.ops.axes import from_the_front
from reducelower.errors import RefusedError
from reducelower.model.attributes import value_of
from reducelower.model.build import make_node
from reducelower.scope.scope import Scope

__all__: list[str] = []

_STEPS = {"CumSum": ("Add", 0), "CumProd": ("Mul", 1)}
"""What combines an element with those before it, and what there is before the first."""


@expresses("CumProd", "CumSum", opset=13)
def _cumulative(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """The state is what came of the elements so far; exclusive yields it before the element is taken in."""
    step, start = _STEPS[node.op_type]
    body = Writer(node, scope)
    data = node.input[0]
    axes = body.constant_input(1)
    if axes is None:
        raise RefusedError(
            f"its axis is computed at run time, and opset {scope.target_opset} has no {node.op_type}",
            f"make {node.input[1]!r} a constant",
        )
    rank, element_type = scope.needed_rank(data), scope.needed_element_type(data)
    axis = from_the_front(int(axes.reshape(-1)[0]), rank)
    scope.release(node.input[1])
    others = body.constant([other for other in range(rank) if other != axis], TensorProto.INT64, "others")
    shape = body.add("Gather", body.add("Shape", data), others, tail="shape", axis=0)
    first = body.add("Expand", body.constant(start, element_type, "start"), shape, tail="first")
    reverse = int(bool(value_of(node, "reverse", 0)))
    loop = _step_graph(body, step, element_type, bool(value_of(node, "exclusive", 0)), rank - 1)
    _, result = body.add_many(
        "Scan", [first, data], ["last", "result"], body=loop, num_scan_inputs=1, scan_input_axes=[axis],
        scan_output_axes=[axis], scan_input_directions=[reverse], scan_output_directions=[reverse],
    )  # fmt: skip
    del result
    body.nodes[-1].output[1] = node.output[0]
    body.nodes[-1].name = node.name
    return body.nodes


def _step_graph(body: Writer, step: str, element_type: int, exclusive: bool, rank: int) -> GraphProto:
    """One step of the Scan: the state and an element in, the new state and a result out."""
    stem = body.node.name or body.node.output[0]
    before, element, after, yielded = (
        body.scope.fresh(stem, f"/{body.node.op_type}/{tail}") for tail in ("before", "element", "after", "yielded")
    )
    graph = GraphProto(name=f"{stem}_step")
    graph.node.append(make_node(step, [before, element], [after]))
    graph.node.append(make_node("Identity", [before if exclusive else after], [yielded]))
    for values, members in ((graph.input, (before, element)), (graph.output, (after, yielded))):
        for name in members:
            tensor = values.add(name=name).type.tensor_type
            tensor.elem_type = element_type
            tensor.shape.SetInParent()
            for _ in range(rank):
                tensor.shape.dim.add()
    return graph
