"""Which elements a Slice takes."""

from __future__ import annotations

__all__ = ["places"]


def places(start: int, end: int, step: int, size: int) -> range:
    """The places that Slice takes along an axis of a size, with negative bounds counted from its end.

    Going backward, a start before the first element is that element; numpy takes none then, and so does onnx's own
    reference evaluator.

    Source: https://onnx.ai/onnx/operators/onnx__Slice.html (13), "clamped"; onnxruntime does so in every version.
    """
    start, end = (bound + size if bound < 0 else bound for bound in (start, end))
    if step > 0:
        return range(min(max(start, 0), size), min(max(end, 0), size), step)
    return range(min(max(start, 0), size - 1), min(max(end, -1), size - 1), step)
