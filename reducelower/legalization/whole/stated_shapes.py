"""Take back shapes that a model states and its nodes do not yield, where inference learns more at the target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from onnx import ModelProto, TensorShapeProto, ValueInfoProto

from reducelower.legalization.whole import Attempt, Changed
from reducelower.lines import enumerated
from reducelower.model.document import Document, new_objection
from reducelower.model.graph import all_nodes, graphs, subgraphs
from reducelower.model.protected import objection
from reducelower.model.skeleton import without_weights
from reducelower.model.value_info import clear_sizes_below_zero
from reducelower.options import Settings
from reducelower.types import Inference
from reducelower.types.sizes import Polynomial, Size

__all__ = [
    "LOOPS",
    "drop_shapes_in_loops",
    "without_shapes_in_loops",
    "without_sizes_below_zero",
    "without_sizes_that_change",
]

LOOPS = frozenset({"Loop", "Scan"})
_MINUS_ONE = TensorShapeProto.Dimension(dim_value=-1).SerializeToString()
_TAKEN_OUT = "took the sizes of -1 that it states for unknown"


def without_shapes_in_loops(tried: Attempt, settings: Settings) -> Changed | None:
    """The model without the shapes stated in loops, if strict inference objects to the result and not to the source."""
    source, made, plan = tried
    if plan.refusals or plan.source_opset == plan.target.opset or not new_objection(source, made):
        return None
    eased = source.copy()
    done = tuple(drop_shapes_in_loops(eased))
    return Changed(Document(eased), done) if done else None


def drop_shapes_in_loops(model: ModelProto) -> Iterator[str]:
    """Drop the shapes that bodies of Loop and Scan state for their inputs and outputs; the model is changed.

    Exporters may state scalars there, whatever the values are, and inference of old opset versions does not notice.
    """
    dropped = False
    for node in all_nodes(model):
        inside = [graph for _, _, graph in subgraphs(node)] if node.op_type in LOOPS else []
        own = 2 if node.op_type == "Loop" else 0  # onnxruntime needs the shapes of iteration count and condition
        for value in (value for body in inside for value in (*body.input[own:], *body.output[own // 2 :])):
            dropped |= value.type.tensor_type.HasField("shape")
            value.type.tensor_type.ClearField("shape")
    if dropped:
        yield "dropped the shapes it states inside of loops, which are not what their nodes yield"


def without_sizes_that_change(tried: Attempt, settings: Settings) -> Changed | None:
    """The model without sizes stated of what a Loop carries that its body does not keep, if anything is rewritten.

    Exporters state those of the first iteration. If one is not known, others that depend on it may not be kept either.
    """
    source, made, _ = tried
    if made.message.graph == source.message.graph:
        return None
    eased = source.copy()
    names: dict[str, None] = {}
    while changing := list(_changing(eased)):
        for value, axes in changing:
            names[value.name] = None
            for axis in axes:
                value.type.tensor_type.shape.dim[axis].Clear()
    sentence = f"took the sizes of {enumerated([*map(repr, names)], 3)} that a Loop changes for unknown"
    return Changed(Document(eased), (sentence,)) if names else None


def _changing(model: ModelProto) -> Iterator[tuple[ValueInfoProto, Sequence[int]]]:
    """The inputs and outputs of bodies of Loops with sizes that are stated, and are others after an iteration."""
    inference = Inference(model)
    for key in inference.keys:
        graph = inference.graph(key)
        for body in chain.from_iterable(map(graph.inside, graph.holder.node)):
            if body.node is None or body.node.op_type != "Loop":
                continue
            for given, left in zip(body.holder.input[2:], body.holder.output[1:], strict=False):
                before, after = (inference.known(value.name, body).shape for value in (given, left))
                if before is None or after is None or len(before) != len(after):
                    continue
                dims = [value.type.tensor_type.shape.dim for value in (given, left)]
                axes = [at for at, sizes in enumerate(zip(before, after, strict=True)) if sizes[0] != sizes[1]]
                alike = {at for at, both in enumerate(zip(*dims, strict=False)) if both[0] == both[1]}
                axes = [at for at in axes if not (at in alike and _is_untold(after[at], inference))]
                for value, stated in zip((given, left), dims, strict=True):
                    if named := [at for at in axes if at < len(stated) and stated[at].WhichOneof("value")]:
                        yield value, named
    inference.clear()


def _is_untold(size: Size, inference: Inference) -> bool:
    """Whether inference tells nothing of a size, so that it may be what is stated."""
    is_atom = isinstance(size, Polynomial) and len(size.atoms) == 1 and size == Polynomial.atom(*size.atoms)
    return is_atom and not inference.atoms.name(size)


def without_sizes_below_zero(tried: Attempt, settings: Settings) -> Changed | None:
    """The model without sizes of -1: exporters write it for an unknown size, which inference may know of a new node."""
    source, made, plan = tried
    if _MINUS_ONE not in source.columns.model or plan.changes_nothing:
        return None
    about_nodes = any(refusal.node for refusal in plan.refusals)  # else the model as a whole did not fit
    if about_nodes or not (plan.refusals or _objects_to_sizes(made)):
        return None
    eased = source.copy()
    stated = (value for _, graph in graphs(eased) for value in (*graph.output, *graph.value_info))
    return Changed(Document(eased), (_TAKEN_OUT,)) if clear_sizes_below_zero(stated) else None


def _objects_to_sizes(document: Document) -> bool:
    """Whether strict inference objects to a model with the sizes below zero that it states of what nodes compute."""
    bare = without_weights(document.message)
    clear_sizes_below_zero(bare.graph.input)
    return bool(objection(bare))
