"""The meaning of remarks in vendors' lists of operators: facts, by a pattern for `operator: remark`.

None means that a remark says nothing about nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reducelower.runtimes.facts import Is

__all__ = ["COREML", "RKNN", "TIDL", "WEBGPU", "WEBNN", "Remarks"]

Remarks = Mapping[str, Sequence[tuple[str, Is, Mapping[str, Any]]] | None]

_FROM_FRONT = ("Only two spatial dimensions are supported.", "refused")
_NOT_CONSTANT = ["dynamic", "fed"]
_MORE_INPUTS_CONSTANT = (
    "All inputs except the first must be constant.",
    "refused",
    {"last": _NOT_CONSTANT, "inputs": "2-"},
)

COREML: Remarks = {
    r"(Average|Max|GlobalAverage|GlobalMax)Pool: Only 2D": [(*_FROM_FRONT, {"rank": "-3, 5-"})],
    r"Conv: Only 1D/2D": [("Only one and two spatial dimensions are supported.", "refused", {"rank": "5-"})],
    r"ConvTranspose: ": [
        ("Pads must be stated.", "refused", {"attributes": ["auto_pad=SAME_UPPER", "auto_pad=SAME_LOWER"]}),
        ("An output shape is not supported.", "refused", {"attributes": ["output_shape"]}),
        ("The attribute output_padding is not supported.", "refused", {"attributes": ["output_padding!=0"]}),
        _MORE_INPUTS_CONSTANT,
    ],
    r"DepthToSpace: If 'mode'": [
        ("With the mode CRD, sizes must be known.", "refused", {"open_sizes": "1-", "attributes": ["mode=CRD"]}),
    ],
    r"GatherND: batch_dims": [("batch_dims must be 0.", "refused", {"attributes": ["batch_dims!=0"]})],
    r"Gemm: Input B": [_MORE_INPUTS_CONSTANT],
    r"GridSample: ": [
        ("Only two spatial dimensions are supported.", "refused", {"rank": "-3, 5-"}),
        ("There is no cubic interpolation.", "refused", {"attributes": ["mode=cubic", "mode=bicubic"]}),
    ],
    r"Pow: Only": [
        ("Both operands must be float.", "refused", {"element_types": ["float16", "double", "int32", "int64"]}),
        ("Both operands must be float.", "refused", {"second_types": ["float16", "double", "int32", "int64"]}),
    ],
    r"Slice: ": [_MORE_INPUTS_CONSTANT],
    r"Split: ": [_MORE_INPUTS_CONSTANT],
    r"Tile: ": [("Only five dimensions are supported.", "refused", {"rank": "6-"})],
    r"(MatMul|Range|Reciprocal|Resize): ": None,
}

RKNN: Remarks = {
    r"EyeLike: only support constant": None,
    r"(GRU|LogSoftmax|RoiAlign|Slice|Softmax|Tile): ": None,
    r"If: only support constant": None,
    r"Resize: mode": [("There is no cubic interpolation.", "refused", {"attributes": ["mode=cubic"]})],
}

WEBGPU: Remarks = {
    r"ConvTranspose: ": [("Only one and two spatial dimensions are supported.", "refused", {"rank": "5-"})],
    # The list has the same remark for Conv, for which the package has a kernel, and for align_corners if Resize
    # shrinks the data, which no fact can ask for.
    r"(AveragePool|Conv|MaxPool|Reshape|Resize|Shape|Transpose): ": None,
}

_IMAGES = ("Only two spatial dimensions are supported.", "refused", {"rank": "-3, 5-"})
_POWER = ("Only p=2 is supported.", "refused", {"attributes": ["p!=2"]})
_LAST_CONSTANT = ("The last input must be constant.", "refused", {"last": _NOT_CONSTANT, "inputs": "2-"})
_RECURRENT = [
    ("layout=1 is not supported.", "refused", {"attributes": ["layout=1"]}),
    ("The attribute clip is not supported.", "refused", {"attributes": ["clip"]}),
]

WEBNN: Remarks = {
    r"(AveragePool|GlobalAveragePool|GlobalMaxPool): Only supports 4-D": [_IMAGES],
    r"BatchNormalization: ": [("Training is not supported.", "refused", {"attributes": ["training_mode=1"]})],
    r"(Conv|ConvInteger|ConvTranspose): ": [
        ("Only one and two spatial dimensions are supported.", "refused", {"rank": "5-"}),
    ],
    r"(CumSum|Expand|Split|Squeeze|Tile|Trilu): ": [_LAST_CONSTANT],
    r"GatherND: ": [("batch_dims must be 0.", "refused", {"attributes": ["batch_dims!=0"]})],
    r"(GlobalLpPool|LpPool): ": [_IMAGES, _POWER],
    r"GRU: ": _RECURRENT,
    r"LSTM: ": [*_RECURRENT, ("input_forget=1 is not supported.", "refused", {"attributes": ["input_forget=1"]})],
    r"MaxPool: ": [
        _IMAGES,
        ("storage_order=1 is not supported.", "refused", {"attributes": ["storage_order=1"]}),
        ("The output of indices is not supported.", "refused", {"outputs": "2-"}),
    ],
    r"Pad: ": [("The mode wrap is not supported.", "refused", {"attributes": ["mode=wrap"]})],
    r"Reduce\w+: ": [("Axes must be constant.", "refused", {"axes": ["dynamic"]})],
    r"Reshape: ": [
        _LAST_CONSTANT,
        ("A shape with a zero is not supported.", "refused", {"holds_zero": True}),
    ],
    r"Resize: ": [
        _IMAGES,
        _LAST_CONSTANT,
        ("There is no cubic interpolation.", "refused", {"attributes": ["mode=cubic"]}),
        ("Antialiasing is not supported.", "refused", {"attributes": ["antialias=1"]}),
        ("exclude_outside=1 is not supported.", "refused", {"attributes": ["exclude_outside=1"]}),
        ("The aspect ratio cannot be kept.", "refused", {"attributes": ["keep_aspect_ratio_policy!=stretch"]}),
    ],
    r"Scatter(Elements|ND): ": [("Reductions are not supported.", "refused", {"attributes": ["reduction!=none"]})],
    r"Slice: ": [_MORE_INPUTS_CONSTANT],
    r"Dropout: Only supports test mode": None,
}

_SIX = ("Only six dimensions are supported.", "refused", {"rank": "7-"})

TIDL: Remarks = {
    r"(\w+): .*Only default dilations": [
        ("Dilations are not supported.", "refused", {"attributes": ["dilations!=1"]}),
    ],
    r"PRelu: .*variable slope": [_SIX, ("The slope must be constant.", "refused", {"last": _NOT_CONSTANT})],
    r"(Add|Mul|Sub|Div): ": [_SIX],
    r"BatchNormalization: .*training_mode": [
        ("Training is not supported.", "refused", {"attributes": ["training_mode=1"]}),
    ],
    r"ArgMax: .*keepdims.*select_last_index": [
        ("Reduced dimensions must be kept.", "refused", {"attributes": ["keepdims=0"]}),
        ("Only the axis -3 is supported.", "refused", {"attributes": ["axis!=-3"]}),
        ("select_last_index is not supported.", "refused", {"attributes": ["select_last_index=1"]}),
    ],
    r"(Resize|Upsample): .*(nearest).*linear": [
        ("There is no cubic interpolation.", "refused", {"attributes": ["mode=cubic"]}),
        ("Antialiasing is not supported.", "refused", {"attributes": ["antialias=1"]}),
    ],
    r"(DepthToSpace|SpaceToDepth): .*four-dim": [
        ("Only data of four dimensions are supported.", "refused", {"rank": "-3, 5-"}),
    ],
    r"Pad: .*constant pad": [
        _SIX,
        ("Only the mode constant is supported.", "refused", {"attributes": ["mode!=constant"]}),
    ],
    r"Reduce(Min|Max): .*keepdims": [
        ("Reduced dimensions must be kept.", "refused", {"keepdims": ["0"]}),
        ("Only one axis, the height, is supported.", "refused", {"axes_count": "2-"}),
    ],
    r"ScatterElements: ": [("Reductions are not supported.", "refused", {"attributes": ["reduction!=none"]})],
    r"ScatterND: .*'mul'": [("The reduction mul is not supported.", "refused", {"attributes": ["reduction=mul"]})],
    r"ScatterND: .*'none'": [("Reductions are not supported.", "refused", {"attributes": ["reduction!=none"]})],
    r"Reshape: .*Variable shape": [
        _SIX,
        ("The shape must be constant.", "refused", {"last": _NOT_CONSTANT, "inputs": "2"}),
        ("allowzero is not supported.", "refused", {"attributes": ["allowzero=1"]}),
    ],
    r"Gather: .*greater than 1D": [("Vectors are not supported.", "refused", {"rank": "-1"})],
    r"GridSample: .*zero padding": [
        ("Only zeros are supported as padding.", "refused", {"attributes": ["padding_mode!=zeros"]}),
        ("Only two spatial dimensions are supported.", "refused", {"rank": "-3, 5-"}),
    ],
    r"TopK: .*sorted": [
        ("Unsorted results are not supported.", "refused", {"attributes": ["sorted=0"]}),
        ("k must be constant.", "refused", {"last": _NOT_CONSTANT}),
    ],
    r"(Dequantize|Quantize)Linear: ": [("Only the axis 1 is supported.", "refused", {"attributes": ["axis!=1"]})],
    r"(Conv|ConvTranspose|Gemm|MatMul|AveragePool|MaxPool|GlobalAveragePool): .*<= 4": [
        ("Only four dimensions are supported.", "refused", {"rank": "5-"}),
    ],
    r"(ReduceMean|Erf|Identity|Dropout): .*(Not supported as|fused)": None,
    r": .*<= 6": [_SIX],
    r"": None,
}
