"""For users of onnx_ir and onnxscript: the conversions as passes.

`ConvertVersionPass`, `ExpandPass` and `RaisePass` are `onnx_ir.passes` that compose with others in
`onnx_ir.passes.Sequential`. Importing this package imports onnx_ir.
"""

from __future__ import annotations

from reducelower.ir.passes import ConvertVersionPass, ExpandPass, RaisePass

__all__ = ["ConvertVersionPass", "ExpandPass", "RaisePass"]


def __dir__() -> list[str]:
    """The public names, without the modules that hold them."""
    return sorted(__all__)
