"""What a region may be fed: which inputs are indices, shapes or divisors, and which operators leave values open."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    helper,
    numpy_helper,
    shape_inference,
)

from reducelower.model.graph import all_nodes, subgraphs, walk
from reducelower.model.inference import skeleton
from reducelower.model.onnx_inference import infer_shapes
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.numerics.measure import Array, exact_numbers
from reducelower.verification.bounded import MOVING
from reducelower.verification.elementwise import ELEMENTWISE
from reducelower.verification.inputs import tensor_dims
from reducelower.verification.pairs import SMALL_CONSTANT, FreeInput, Pair
from reducelower.verification.places import Dims
from reducelower.verification.roles import HANDING_ON, Role, roles_of, vectors

__all__ = [
    "FED",
    "WHERE",
    "Limits",
    "becoming",
    "dims_on",
    "gives_nothing",
    "is_ruled_out",
    "leaves_nothing",
    "limits_of",
    "may_have",
    "takes_any",
    "takes_empty",
]

# Inputs that say where or how many: an index, an axis, a shape, a size, a count. Any other value is an error, or asks
# for more memory than there is.
WHERE: Mapping[str, frozenset[int]] = {
    name: frozenset(places)
    for name, places in {
        "AffineGrid": (1,), "BlackmanWindow": (0,), "CenterCropPad": (1,),
        "ArrayFeatureExtractor": (1,), "ConstantOfShape": (0,), "CumProd": (1,), "CumSum": (1,), "DFT": (1, 2),
        "Expand": (1,), "Gather": (1,),
        "GatherElements": (1,), "GatherND": (1,), "HammingWindow": (0,), "HannWindow": (0,), "Loop": (0,),
        "MelWeightMatrix": (0, 1, 2), "NonMaxSuppression": (2,), "OneHot": (1,), "Pad": (1, 3), "Range": (0, 1, 2),
        "Reshape": (1,), "Resize": (1, 2, 3), "ReverseSequence": (1,), "RoiAlign": (2,), "STFT": (1, 3),
        "Scatter": (1,), "ScatterElements": (1,), "ScatterND": (1,), "SequenceAt": (1,), "SequenceErase": (1,),
        "SequenceInsert": (2,), "Slice": (1, 2, 3, 4), "Split": (1,), "SplitToSequence": (1,), "Squeeze": (1,),
        "TensorScatter": (2,), "Tile": (1,), "TopK": (1,), "Trilu": (1,), "Unsqueeze": (1,), "Upsample": (1,),
        "MaxUnpool": (1, 2), "BitShift": (1,), "NegativeLogLikelihoodLoss": (1,), "SoftmaxCrossEntropyLoss": (1,),
        "GRU": (4,), "LSTM": (4,), "RNN": (4,), "Attention": (6,), "RotaryEmbedding": (3,), "Dropout": (1, 2),
        **{
            f"Reduce{name}": (1,)
            for name in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
        },
    }.items()
}  # fmt: skip

_KNOWN_DOMAINS = DEFAULT_DOMAINS | {"ai.onnx.ml"}
_DIVISORS = {"Div": frozenset({1}), "Mod": frozenset({1}), "QuantizeLinear": frozenset({1})}

# Their kernels in onnxruntime 1.31 end the process on data of some ranks that their pages, and inference, rule out.
_ENDING = frozenset(
    {
        "AffineGrid", "Conv", "ConvInteger", "DFT", "GridSample", "MaxRoiPool", "Multinomial", "QLinearConv",
        "ReverseSequence", "RoiAlign", "STFT",
    }
)  # fmt: skip

# They say of a value how large it is, whatever is in it.
_OF_SHAPE = frozenset({"Shape", "Size"})

# Operators whose pages leave open what a NaN or an infinity does: they order or index by values, round them to
# integers, or interpolate between coordinates. https://onnx.ai/onnx/operators
_OPEN = frozenset(
    {
        "AffineGrid", "ArgMax", "ArgMin", "Col2Im", "DFT", "Det", "DynamicQuantizeLinear", "GlobalMaxPool",
        "GridSample", "Hardmax", "LRN", "LpNormalization", "MaxPool", "MaxRoiPool", "MaxUnpool", "Multinomial",
        "NonMaxSuppression", "QuantizeLinear", "Resize", "RoiAlign", "STFT", "TopK", "Unique", "Upsample",
    }
)  # fmt: skip

# Operators whose kernels in onnxruntime 1.31 end the process on some empty tensors, or do not come back: they divide by
# sizes, or step through none. All others were run on each of onnx's own cases with sizes of zero in its place.
_ENDING_ON_EMPTY = frozenset(
    {
        "Attention", "CausalConvWithState", "Conv", "ConvInteger", "ConvTranspose", "DeformConv", "Einsum", "GRU",
        "LSTM", "QLinearConv", "RNN", "STFT", "Scan",
    }
)  # fmt: skip

# Operators whose kernels take data of any rank, or object to it, and of which empty data is nothing unusual.
_TAKES_ANY = (
    ELEMENTWISE
    | MOVING
    | {
        "Concat", "ConstantOfShape", "Expand", "Gather", "If", "MatMul", "Range", "ReduceL1", "ReduceL2",
        "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum",
        "ReduceSumSquare", "Shape", "Size", "Slice", "Softmax", "Split", "Tile",
    }
) - {"BitShift"}  # fmt: skip

# They give elements of what they are given, and what that is does not matter to them.
_MOVES = MOVING | {"Concat", "Constant", "DepthToSpace", "Expand", "Shape", "Size", "SpaceToDepth", "Split", "Tile"}

# What they give jumps where what they are given changes little.
_STEPS = frozenset(
    {
        "ArgMax", "ArgMin", "Ceil", "DynamicQuantizeLinear", "Equal", "Floor", "Greater", "GreaterOrEqual", "Hardmax",
        "Less", "LessOrEqual", "Mod", "NonMaxSuppression", "QuantizeLinear", "Round", "TopK", "TreeEnsemble",
        "TreeEnsembleClassifier", "TreeEnsembleRegressor",
    }
)  # fmt: skip

_INTEGERS = frozenset(
    getattr(TensorProto, name)
    for name in ("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64", "INT4", "UINT4")
    if hasattr(TensorProto, name)
)


_SPATIAL = 2  # the first axis that a window moves along
_FEW = 8
FED = 7
"""The largest size that is fed to every region."""
_OF_SIZE = 20_000
_MOST_BOUNDS = 4
_OF_TABLE = 256  # numbers


@dataclass
class Limits:
    """What may not be fed.

    Attributes:
        not_negative: inputs of which what computes them gives nothing below zero.
        where: inputs that are indices, axes, shapes, sizes or counts, or become such.
        divisors: inputs by which integers are divided, or what becomes an integer, so that zero is no value for them.
        roles: what inputs that say where or how many say of which value.
        ordered: bounds of Clip, whose page leaves open what a NaN among them does.
        vectors: inputs that have one dimension, where their rank is not known.
        held: the shapes of constants, by name.
        open_to_special: an operator that leaves NaN and infinities open; empty where none does.
        rounds_to_integers: whether floats become integers, which is undefined for those that no integer stands for.
        constants: the numbers that either side holds, to try values on either side of.
        tables: where values are compared, some of the numbers in large constants.
        texts: the strings that either side holds, and what is left of patterns without their signs.
        takes_empty: whether empty tensors may be fed.
        takes_any: whether data may have any rank, where none is known, and a replacement has to take what is empty.
        least: the smallest size that is fed; a window over less yields nothing, which ends onnxruntime 1.31 in some of
            the operators behind it.
        is_carried: whether both sides are one node for two versions of its operator, so that less will show the
            difference.
        has_steps: whether floats are cut to steps or compared, so that a slight difference shows in few of many values.
        sizes: the sizes of what either side holds, and the integers that it holds, which sizes may have to fit.
        bounds: those of the integers beyond the sizes that are fed anyway, without their signs.
        only_moves: whether both sides do nothing but to move elements, whatever these are.
        are_apart: whether the sides run in two runtimes, which add up integers beyond their range otherwise.
    """

    where: set[str] = field(default_factory=set)
    not_negative: set[str] = field(default_factory=set)
    divisors: set[str] = field(default_factory=set)
    roles: dict[str, Role] = field(default_factory=dict)
    ordered: set[str] = field(default_factory=set)
    vectors: set[str] = field(default_factory=set)
    held: dict[str, tuple[int, ...]] = field(default_factory=dict)
    open_to_special: str = ""
    rounds_to_integers: bool = False
    constants: tuple[float, ...] = ()
    tables: tuple[float, ...] = ()
    texts: tuple[str, ...] = ()
    takes_empty: bool = True
    takes_any: bool = True
    least: int = 1
    has_steps: bool = False
    is_carried: bool = False
    sizes: frozenset[int] = frozenset()
    bounds: tuple[int, ...] = ()
    only_moves: bool = False
    are_apart: bool = False

    def table(self, name: str) -> int | None:
        """How many rows a constant table has of which an input says which are taken; None for other inputs."""
        role = self.roles.get(name)
        if role is None or role.kind not in ("index", "class") or role.data not in self.held:
            return None
        return role.length(self.held[role.data])

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What was assumed of the inputs, as sentences."""
        found = []
        if self.where:
            found.append(f"{_names(self.where)}: taken for an index, a shape or a count, and fed only such values.")
        if self.divisors:
            found.append(f"{_names(self.divisors)}: never fed zero, by which integers are divided or what becomes one.")
        if self.open_to_special:
            found.append(f"NaN and infinities were not fed: {self.open_to_special} leaves open what they do.")
        if self.rounds_to_integers:
            found.append("Floats beyond the range of integers were not fed: Cast leaves open what they become.")
        return tuple(found)


def _names(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in sorted(names))


def limits_of(pair: Pair) -> Limits:
    """What the two sides of a region may not be fed."""
    limits = Limits()
    free = {item.name for item in pair.inputs}
    integers = {item.name for item in pair.inputs if item.element_type in _INTEGERS}
    for nodes in (pair.nodes, pair.replacement):
        flat = list(walk(nodes))
        limits.where |= becoming(flat, WHERE) & free
        limits.divisors |= becoming(flat, _DIVISORS) & integers
        limits.roles |= roles_of(reversed(flat))
        limits.vectors |= vectors(flat)
        for node in reversed(flat):
            _note(node, limits)
        if limits.open_to_special or limits.rounds_to_integers:
            limits.divisors |= _divisors(flat) & free
    limits.divisors -= limits.where
    limits.not_negative = {item.name for item in pair.inputs if item.is_not_negative}
    limits.held = {name: value.shape for constants in pair.constants for name, value in constants.items()}
    both = list(walk([*pair.nodes, *pair.replacement]))
    limits.takes_empty = takes_empty(both)
    limits.takes_any = takes_any(both)
    found = list(_held(pair))
    held = [value for value in found if value.dtype.kind in "iuf"]
    limits.texts = _texts(value for value in found if value.dtype.kind in "OSUT")
    limits.constants = _constants(held)
    if limits.has_steps:
        limits.tables = _tables(held)
    limits.is_carried = pair.is_carried
    limits.only_moves = all(node.op_type in _MOVES for node in both)
    whole = {
        item for value in held if value.dtype.kind in "iu" and value.size <= _FEW for item in value.ravel().tolist()
    }
    limits.sizes = frozenset(whole | {size for value in found for size in value.shape})
    limits.bounds = _bounds(whole | _positions(both))
    return limits


def _positions(nodes: Iterable[NodeProto]) -> set[int]:
    """The positions and sizes among attributes."""
    named = (item for node in nodes for item in node.attribute if item.name in ("ends", "split", "starts"))
    return {number for item in named for number in item.ints}


def _bounds(whole: Iterable[int]) -> tuple[int, ...]:
    sizes = sorted({abs(number) for number in whole})
    return tuple(size for size in sizes if FED < size < _OF_SIZE)[:_MOST_BOUNDS]


def takes_empty(nodes: Iterable[NodeProto]) -> bool:
    """Whether all of these operators are tried on empty tensors."""
    return all(node.op_type not in _ENDING_ON_EMPTY and node.domain in DEFAULT_DOMAINS for node in nodes)


def takes_any(nodes: Iterable[NodeProto]) -> bool:
    """Whether all of these operators take data of any rank and size, or object to it."""
    return all(node.op_type in _TAKES_ANY and node.domain in DEFAULT_DOMAINS for node in nodes)


def leaves_nothing(model: ModelProto, feeds: Mapping[str, Any]) -> bool:
    """Whether a window of a model looks at nothing on inputs of these shapes, so that its result has no elements.

    Some of onnxruntime's kernels end the process on such values. A batch of none is none of a window's.
    """
    seen = {name for node in all_nodes(model) if _window(node) > 1 for name in node.output}
    if not seen:
        return False
    graph = _inferred(model, feeds)
    return graph is not None and any(
        value.name in seen and _is_empty(value, _SPATIAL) for value in (*graph.value_info, *graph.output)
    )


def gives_nothing(model: ModelProto, inputs: Iterable[FreeInput]) -> bool:
    """Whether none of the results of a model has elements, at the sizes that are declared for its inputs."""
    graph = _inferred(model, {item.name: item.dims for item in inputs})
    return graph is not None and all(map(_is_empty, graph.output))


def may_have(known: Dims | None, shape: tuple[int, ...]) -> bool:
    """Whether a value of which this much is known may have a shape."""
    return known is None or (len(known) == len(shape) and _fits(known, shape, len(known)))


def dims_on(model: ModelProto, feeds: Mapping[str, Any], at: int) -> Dims | None:
    """What inference tells of the shape of an output, by its number, on inputs of these shapes."""
    graph = _inferred(model, feeds)
    return None if graph is None else tensor_dims(graph.output[at].type.tensor_type)


def _inferred(model: ModelProto, given: Mapping[str, Any]) -> GraphProto | None:
    try:
        return infer_shapes(_as_fed(model, given), data_prop=True).graph
    except shape_inference.InferenceError:
        return None


def _is_empty(value: ValueInfoProto, first: int = 0) -> bool:
    """Whether a value has no elements along an axis from a first one on."""
    return any(dim.HasField("dim_value") and dim.dim_value <= 0 for dim in value.type.tensor_type.shape.dim[first:])


def is_ruled_out(model: ModelProto, feeds: Mapping[str, Any]) -> bool:
    """Whether inputs have shapes that a model does not take, of which no kernel says so.

    Some end the process on ranks that are none of theirs, and of what has no elements, some do not ask whether it fits.
    """
    is_empty = any(isinstance(value, np.ndarray) and not value.size for value in feeds.values())
    if not is_empty and not any(node.op_type in _ENDING or _batches(node) for node in all_nodes(model)):
        return False
    try:
        graph = infer_shapes(_as_fed(model, feeds), strict_mode=True, data_prop=True).graph
    except shape_inference.InferenceError:
        return True
    values = (*graph.value_info, *graph.input, *graph.output)
    known = {value.name: tensor_dims(value.type.tensor_type) or () for value in values}
    known |= {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    return not all(
        _fits(known.get(node.input[0], ()), known.get(node.input[1], ()), _batches(node))
        for node in graph.node
        if _batches(node)
    )


def _batches(node: NodeProto) -> int:
    """How many sizes of data and indices have to agree: onnxruntime 1.31 reads beside the data where they do not."""
    return next((item.i for item in node.attribute if node.op_type == "GatherND" and item.name == "batch_dims"), 0)


def _fits(one: Dims, other: Dims, count: int) -> bool:
    """Whether as many leading sizes are the same, as far as they are known."""
    sizes = zip(one[:count], other[:count], strict=False)
    return all(left == right for left, right in sizes if isinstance(left, int) and isinstance(right, int))


def _as_fed(model: ModelProto, given: Mapping[str, Any]) -> ModelProto:
    """A model without weights whose inputs have these shapes, or those of arrays, and that states no other shapes.

    Small whole numbers are given as they are, since they may be shapes.
    """
    bare = skeleton(model)
    for node in walk(bare.graph.node):  # of what is inside, types do not matter
        for _, _, graph in subgraphs(node):
            del graph.value_info[:]
    for value in (*bare.graph.value_info, *bare.graph.output):
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    for value in bare.graph.input:
        fed = given.get(value.name)
        dims = fed.shape if isinstance(fed, np.ndarray) else fed
        if isinstance(dims, tuple):
            value.type.CopyFrom(helper.make_tensor_type_proto(value.type.tensor_type.elem_type, dims))
        if isinstance(fed, np.ndarray) and fed.dtype == np.int64 and fed.size <= SMALL_CONSTANT:
            bare.graph.initializer.append(numpy_helper.from_array(fed, value.name))  # a shape, or an axis
    return bare


def _note(node: NodeProto, limits: Limits) -> None:
    limits.has_steps |= node.op_type in _STEPS
    if node.domain not in DEFAULT_DOMAINS:
        return
    limits.least = max(limits.least, _window(node))
    if node.op_type == "Clip":
        limits.ordered.update(node.input[1:])
    if node.op_type in _OPEN and not limits.open_to_special:
        limits.open_to_special = node.op_type
    if node.op_type == "Cast" and any(item.name == "to" and item.i in _INTEGERS for item in node.attribute):
        limits.rounds_to_integers = True
    if node.op_type in ("CastLike", "QLinearConv", "QLinearMatMul"):
        limits.rounds_to_integers = True
    limits.has_steps |= limits.rounds_to_integers


def _window(node: NodeProto) -> int:
    """How far the window of a node reaches along any axis, as far as its attributes say; 1 for a node without one."""
    said = {item.name: list(item.ints) for item in node.attribute if item.name in ("kernel_shape", "dilations")}
    kernel = said.get("kernel_shape", [])
    dilations = said.get("dilations") or [1] * len(kernel)
    return max(((size - 1) * step + 1 for size, step in zip(kernel, dilations, strict=False)), default=1)


def becoming(nodes: Sequence[NodeProto], slots: Mapping[str, frozenset[int]]) -> set[str]:
    """The values that reach one of these inputs, through whatever computes with them."""
    found: set[str] = set()
    while True:
        count = len(found)
        for node in reversed(nodes):
            places = slots.get(node.op_type, ()) if node.domain in _KNOWN_DOMAINS else ()
            found.update(name for at, name in enumerate(node.input) if at in places and name)
            if node.op_type not in _OF_SHAPE and any(name in found for name in node.output):
                found.update(name for name in node.input if name)
            for _, _, graph in subgraphs(node):
                _through(node, [value.name for value in graph.input], found)
                if any(name in found for name in node.output):
                    found.update(value.name for value in graph.output)
        if len(found) == count:
            return found


def _divisors(nodes: Sequence[NodeProto]) -> set[str]:
    """The values by which something is divided as they are."""
    found: set[str] = set()
    for node in reversed(nodes):
        if node.domain in DEFAULT_DOMAINS:
            found.update(name for at, name in enumerate(node.input) if at in _DIVISORS.get(node.op_type, ()) and name)
            if node.op_type in HANDING_ON and node.output[0] in found:
                found.add(node.input[0])
    return found


def _through(node: NodeProto, inner: Sequence[str], found: set[str]) -> None:
    """From the inputs of a body to those of its node."""
    outer = list(node.input)[2:] if node.op_type == "Loop" else list(node.input)
    formal = inner[2:] if node.op_type == "Loop" else inner
    found.update(given for given, name in zip(outer, formal, strict=False) if name in found and given)


def _held(pair: Pair) -> Iterator[Array]:
    """What either side holds: constants, and numeric attributes of nodes."""
    for constants in pair.constants:
        yield from constants.values()
    for node in walk([*pair.nodes, *pair.replacement]):
        for attribute in node.attribute:
            if attribute.ref_attr_name:
                continue
            if attribute.type in (AttributeProto.FLOAT, AttributeProto.FLOATS):
                yield np.atleast_1d(np.array(helper.get_attribute_value(attribute), np.float64))
            elif attribute.type == AttributeProto.INTS and attribute.name.startswith("keys"):
                yield np.array(attribute.ints, np.int64)
            elif attribute.type in (AttributeProto.STRING, AttributeProto.STRINGS):
                yield np.atleast_1d(np.array(helper.get_attribute_value(attribute), object))
            elif attribute.type == AttributeProto.TENSOR and attribute.t.data_location != TensorProto.EXTERNAL:
                yield numpy_helper.to_array(attribute.t)


def _texts(held: Iterable[Array]) -> tuple[str, ...]:
    """Some of the strings among constants and attributes, as they are and as letters and digits alone."""
    found = [item for value in held for item in exact_numbers(value.ravel()[:_OF_TABLE]).tolist()]
    plain = ("".join(filter(str.isalnum, item)) for item in found)
    return tuple(dict.fromkeys([*found, *plain]))[:_OF_TABLE]


def _constants(held: Sequence[Array]) -> tuple[float, ...]:
    """The smallest numbers among small constants."""
    found = dict.fromkeys(float(item) for value in held if value.size <= _FEW for item in value.ravel().tolist())
    finite = [value for value in found if value == value and abs(value) < 1e300]
    return tuple(sorted(finite, key=abs)[:_FEW])


def _tables(held: Sequence[Array]) -> tuple[float, ...]:
    """Some of the numbers in large constants, which say where the data lies that they are about."""
    found = [value.ravel()[:: value.size // _OF_TABLE + 1].astype(np.float64) for value in held if value.size > _FEW]
    drawn = np.concatenate([*found, np.zeros(0)])
    return tuple(drawn[np.isfinite(drawn)][:: drawn.size // _OF_TABLE + 1].tolist())
