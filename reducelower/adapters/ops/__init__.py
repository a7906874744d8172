"""What operators other than Reduce need at their boundaries: a module per family, imported for what a model has."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module

__all__ = ["FAMILIES", "load"]

FAMILIES: Mapping[str, str] = {
    "affine_grid": "AffineGrid",
    "arithmetic": "Gemm Mod Pow",
    "attention": "Attention",
    "axes": "ArgMax ArgMin Compress Concat Flatten Gather Hardmax "
    "LogSoftmax OneHot Slice Softmax Split Squeeze Unsqueeze",
    "batch_normalization": "BatchNormalization InstanceNormalization",
    "bits": "BitCast BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor",
    "broadcasting": "Add And Div Equal Gemm Greater Less Max Mean Min Mul Or PRelu Pow Sub Sum Xor",
    "casting": "Cast CastLike Concat",
    "choosing": "Where",
    "column_to_image": "Col2Im",
    "control": "If Loop Scan",
    "cumulative": "CumProd CumSum",
    "deform_conv": "DeformConv",
    "determinant": "Det",
    "dilated_pooling": "AveragePool LpPool MaxPool",
    "dropout": "Dropout",
    "einsum": "Einsum",
    "elementwise": "Bernoulli Celu Gelu Identity IsInf Round Shrink Sign",
    "filling": "Compress ConstantOfShape Expand IsNaN NonZero OneHot",
    "fourier": "BlackmanWindow DFT HammingWindow HannWindow STFT",
    "grid_sample": "GridSample",
    "indexing": "GatherElements GatherND Scatter ScatterElements ScatterND",
    "integer_products": "ConvInteger QLinearConv QLinearMatMul",
    "layer_normalization": "GroupNormalization MeanVarianceNormalization SimplifiedLayerNormalization",
    "optionals": "OptionalGetElement OptionalHasElement",
    "ordering": "Abs Clip Equal Greater Less Max Min Relu",
    "padding": "CenterCropPad Pad",
    "pooling": "AveragePool GlobalLpPool LpPool MaxPool",
    "quantization": "DequantizeLinear MatMulInteger QuantizeLinear",
    "ramps": "Range Trilu",
    "rearranging": "DepthToSpace ReverseSequence SpaceToDepth TensorScatter",
    "recurrent": "GRU LSTM RNN",
    "regions": "RoiAlign",
    "resize": "Resize Upsample",
    "sequences": "SequenceMap",
    "shaping": "GatherND Reshape Shape Tile",
    "slicing": "Slice",
    "softmax": "Hardmax LogSoftmax Softmax",
    "splitting": "Split",
    "suppression": "NonMaxSuppression",
    "topk": "ArgMax ArgMin TopK",
    "unique": "Unique",
}
"""The operators that each module registers rewrites for."""


@cache
def _families() -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for family, op_types in FAMILIES.items():
        for op_type in op_types.split():
            found.setdefault(op_type, []).append(family)
    return found


@cache
def load(op_type: str) -> None:
    """Import the modules that register rewrites for an operator, so that it can be looked up among them."""
    for family in _families().get(op_type, ()):
        import_module(f"{__name__}.{family}")
