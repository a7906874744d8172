"""Drop sizes that are stated as numbers although they depend on the inputs.

Whoever makes the inputs of a model dynamic often leaves its value_info as it was. onnxruntime believes what is stated
there: the Shape of such a value becomes a constant, and so does what is computed from it. If one stated size is stale,
all were stated when the inputs had other sizes. So no number counts then that the nodes do not yield.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnx import ModelProto, TensorShapeProto, TypeProto, ValueInfoProto

from reducelower.legalization.edits import Edit
from reducelower.legalization.whole import Attempt, Changed
from reducelower.lines import enumerated
from reducelower.model.document import Document
from reducelower.model.skeleton import LARGEST_CONSTANT, skeleton
from reducelower.model.value_info import sizes
from reducelower.options import Settings
from reducelower.scope.graph import GraphScope
from reducelower.types import GraphKey, Inference

__all__ = ["reads_stale_sizes", "without_stale_sizes"]

_MOST_NAMES = 3


def reads_stale_sizes(edits: Sequence[Edit]) -> bool:
    """Whether what was written depends on the sizes of a value of which a stale one is stated.

    The edits are those of all graphs.
    """
    inputs = edits[0].scope.holder.input
    if not any(edit.scope.holder.value_info for edit in edits) or not any(map(_is_open, inputs)):
        return False
    return any(map(_reads_stale_size, edits))


def _is_open(value: ValueInfoProto) -> bool:
    """Whether not all sizes of an input are stated as numbers."""
    stated = sizes(value.type)
    return stated is None or None in stated


def _reads_stale_size(edit: Edit) -> bool:
    """Whether this is true of the edits of one graph.

    If no shape is stated of a value, onnxruntime infers it from what is stated further up.
    """
    outcomes = ((index, rewrite.outcome) for index, rewrite in edit.rewrites.items())
    places = [index for index, outcome in outcomes if outcome is not None and outcome.depends_on_sizes]
    pending = [(edit.scope, name) for index in places for name in edit.scope.holder.node[index].input]
    seen = set[tuple[GraphScope, str]]()
    while pending:
        scope, name = pending.pop()
        home = scope.home(name)
        at = home.positions.get(name)
        if at is None or (home, name) in seen:
            continue
        seen.add((home, name))
        stated = home.stated_type(name).sizes
        if stated is None:
            pending += [(home, read) for read in home.holder.node[at].input]
        elif _is_stale(stated, home, name):
            return True
    return False


def _is_stale(stated: Sequence[object], home: GraphScope, name: str) -> bool:
    """Whether a number is stated for a size of a value of which its node yields another one, or none."""
    if not any(isinstance(size, int) for size in stated):
        return False
    own = home.ground.resolver.ask(home, "shape", name) or ()
    return any(size != known for size, known in zip(stated, own, strict=False) if isinstance(size, int))


def without_stale_sizes(tried: Attempt, settings: Settings) -> Changed | None:
    """The model without the numbers that it states of inner values and its nodes do not yield, if one is stale."""
    if not tried.plan.is_stale:
        return None
    eased, bare = tried.source.copy(), skeleton(tried.source.message, LARGEST_CONSTANT)
    for dim in (dim for _, value in _inner_values(bare) for dim in value.type.tensor_type.shape.dim):
        dim.ClearField("dim_value")
    inference = Inference(bare)
    changed = [
        repr(value.name)
        for key, value in _inner_values(eased)
        if _correct(value.type, inference.type(value.name, inference.graph(key), may_lack_rank=True))
    ]
    inference.clear()
    note = f"dropped the numbers it states for sizes of {enumerated(changed, _MOST_NAMES)}, which depend on its inputs"
    return Changed(Document(eased), (note,)) if changed else None


def _inner_values(model: ModelProto) -> Iterator[tuple[GraphKey, ValueInfoProto]]:
    """What a model states of values that are no inputs or outputs of it, each with the key of its graph."""
    inference = Inference(model)
    for key in inference.keys:
        graph = inference.graph(key).holder
        yield from ((key, value) for value in graph.value_info)
        yield from ((key, value) for value in (*graph.input, *graph.output) if key)
    inference.clear()


def _correct(stated: TypeProto, known: TypeProto | None) -> bool:
    """Put what is known in place of all other numbers; return whether there were any."""
    dims = stated.tensor_type.shape.dim
    own = [] if known is None else known.tensor_type.shape.dim
    others = own if len(own) == len(dims) else [TensorShapeProto.Dimension()] * len(dims)
    wrong = [each for each in zip(dims, others, strict=True) if each[0].HasField("dim_value") and each[0] != each[1]]
    for dim, other in wrong:
        dim.CopyFrom(other)
    return bool(wrong)
