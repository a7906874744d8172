"""Operands that do not hold data, but say where or how much of it is meant."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["WHERE"]

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
