"""Changes between operator versions that schemas do not show.

A schema shows types, attributes and inputs, but not that the same node now means something else. Such boundaries are
listed here, by operator and the opset version that introduced the newer meaning, with a sentence. A node crosses one
only by a rule or a registered rewrite; without one it is refused with that sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["MEANS_OTHERWISE", "NEUTRAL", "SAME_IN_PRACTICE", "TAKES_MORE", "WRITTEN_AS_ABOVE"]

_BROADCAST = "opt-in broadcasting along an axis became broadcasting by trailing dimensions"
_FLATTENED = "the input was flattened to 2-D at axis (default 1); since then only the one axis counts (default -1)"

MEANS_OTHERWISE: Mapping[tuple[str, int], str] = {
    **{
        (op_type, 7): _BROADCAST
        for op_type in ("Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "Sub", "Xor")
    },
    **{(op_type, 13): _FLATTENED for op_type in ("Hardmax", "LogSoftmax", "Softmax")},
    **{(op_type, 7): "output_sequence became the naming of the output" for op_type in ("GRU", "LSTM", "RNN")},
    ("BatchNormalization", 7): "is_test chose the mode; since then the number of outputs does",
    ("BatchNormalization", 9): "the attribute spatial was dropped: statistics are always per channel",
    ("BatchNormalization", 14): "training mode became an attribute; it was chosen by the number of outputs",
    ("Cast", 6): "the attribute to became a number; it was a type's name",
    ("DFT", 20): "axis became an input and its default went from 1 to -2",
    ("Dropout", 7): "is_test was dropped: it is inference only",
    ("Dropout", 10): "the element type of mask became bool",
    ("Gemm", 7): "the attribute broadcast was dropped: C always broadcasts",
    ("GlobalLpPool", 2): "the attribute p became an integer",
    ("GridSample", 20): "the values of mode were renamed",
    ("GroupNormalization", 21): "scale and bias became per channel; they were per group",
    ("LpPool", 2): "the attribute p became an integer",
    ("Pad", 2): "the attribute paddings was renamed to pads",
    ("PRelu", 7): "slope broadcasts by trailing dimensions; it was matched to the channel axis",
    ("Resize", 11): "input 1 became roi and the default coordinate transformation changed",
    ("Resize", 13): "scales and sizes became exclusive",
    ("RoiAlign", 16): "the default coordinate transformation shifts by half a pixel",
    ("Scan", 9): "the implicit batch axis and the input sequence_lens were dropped",
    ("Split", 2): "the input split was dropped",
    ("Split", 18): "an equal split has to state num_outputs",
    ("Tile", 6): "tiles and axis became repeats",
    ("Upsample", 7): "two scale attributes became one list",
}
"""Boundaries where the same node has two meanings."""

TAKES_MORE: Mapping[tuple[str, int], str] = {
    **{
        (op_type, 11): "negative axes became valid"
        for op_type in (
            "ArgMax", "ArgMin", "Compress", "Concat", "Flatten", "Hardmax", "LogSoftmax", "ReduceL1", "ReduceL2",
            "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum",
            "ReduceSumSquare", "Scan", "Slice", "Softmax", "Split", "Squeeze", "Unsqueeze",
        )
    },
    **{(op_type, 8): "inputs may broadcast against each other" for op_type in ("Max", "Mean", "Min", "Sum")},
    ("Gather", 11): "negative indices became valid",
    # By the older text they select nothing; runtimes counted them from the end even then.
    ("OneHot", 11): "negative indices and axes became valid",
    ("If", 11): "branches may give different shapes",
    ("Mod", 28): "fmod=0 became valid for floats",
    ("Pad", 19): "mode wrap is new",
    ("Resize", 19): "coordinate transformation half_pixel_symmetric is new",
}  # fmt: skip
"""Boundaries where the newer version accepts more, so that only the way down needs a rewrite."""

SAME_IN_PRACTICE: Mapping[tuple[str, int], str] = {
    **{
        (op_type, 22): "the window that starts in the end padding was dropped by runtimes before the text said so"
        for op_type in ("AveragePool", "LpPool", "MaxPool")
    },
    ("Clip", 13): "min above max was given a meaning, the one runtimes had",
    ("ConvTranspose", 11): "runtimes used the later text's padding for output_shape all along",
    ("Mod", 13): "the text says which types fmod is for; runtimes take the same as before",
    ("OptionalGetElement", 18): "what is no optional passes through, which its type tells",
    ("OptionalHasElement", 18): "what is no optional is there, which its type tells",
}
"""Boundaries where only the text changed, or where types tell the meaning: nodes stay as they are."""


def _all_ones(values: Any) -> bool:
    return all(value == 1 for value in values)


def _anything(_: Any) -> bool:
    return True


NEUTRAL: Mapping[tuple[str, str], Callable[[Any], bool]] = {
    **{(op_type, "dilations"): _all_ones for op_type in ("AveragePool", "LpPool", "MaxPool")},
    # They tell how values out of range become 8-bit floats, which no opset version without them has.
    ("Cast", "saturate"): _anything,
    ("CastLike", "saturate"): _anything,
    ("QuantizeLinear", "saturate"): _anything,
    ("Cast", "round_mode"): _anything,
    ("CastLike", "round_mode"): _anything,
    # It only affects the output Indices, which came with it.
    ("MaxPool", "storage_order"): _anything,
    # An unsorted result may be sorted.
    ("TopK", "sorted"): _anything,
    # It never had an effect.
    **{
        (op_type, "consumed_inputs"): _anything
        for op_type in (
            "Abs", "Add", "And", "BatchNormalization", "Ceil", "Clip", "Div", "Dropout", "Elu", "Exp", "Floor",
            "HardSigmoid", "InstanceNormalization", "LeakyRelu", "Log", "Max", "Mean", "Min", "Mul", "Neg", "PRelu",
            "Reciprocal", "Relu", "Reshape", "Selu", "Sigmoid", "Sqrt", "Sub", "Sum", "Tanh",
        )
    },
}  # fmt: skip
"""Attribute values without effect: the attribute may be dropped if the other version lacks it.

Attributes not named here are neutral at their schema default.
"""

WRITTEN_AS_ABOVE: Mapping[str, int] = {"Squeeze": 11}
"""Boundaries whose rewrite for the way down also applies between two older opset versions.

Before opset 11, shape inference finds a wrong shape for a Squeeze with axes out of order. Most operators had no
inference before opset 6 or 7, so the checker accepted the nodes that read it. In the raised model it would not.
"""
