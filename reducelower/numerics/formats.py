"""Float formats: the powers of two that rules scale by, and the largest that they may sum."""

from __future__ import annotations

from dataclasses import dataclass

from onnx import TensorProto

__all__ = ["FORMATS", "Format"]


@dataclass(frozen=True)
class Format:
    """A binary floating-point format.

    Attributes:
        precision: significant bits, including the hidden one.
        exponent: exponent of the largest power of two; in IEEE 754 the smallest normal number has 1 - exponent.
        lower: exponent of the smallest power of two to scale by. It is so far above the smallest normal number that
            half of it is not flushed to zero, and so near that the square of the rest is representable.
        summable: exponent of a power of two, 2**32 of which can be summed; 0 if the format is too narrow for that.
    """

    precision: int
    exponent: int
    lower: int
    summable: int

    @property
    def lowest_exponent(self) -> int:
        """The exponent of the smallest normal number."""
        return 1 - self.exponent

    @property
    def largest(self) -> float:
        """The largest finite number."""
        return (2.0 - 2.0 ** (1 - self.precision)) * 2.0**self.exponent


FORMATS: dict[int, Format] = {
    TensorProto.FLOAT16: Format(precision=11, exponent=15, lower=-12, summable=0),
    TensorProto.BFLOAT16: Format(precision=8, exponent=127, lower=-120, summable=64),
    TensorProto.FLOAT: Format(precision=24, exponent=127, lower=-120, summable=64),
    TensorProto.DOUBLE: Format(precision=53, exponent=1023, lower=-1000, summable=512),
}
