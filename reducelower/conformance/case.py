"""A conformance case: one small model, its inputs, the expected outputs, and its features."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

__all__ = ["Array", "Case", "Features"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Features:
    """What is known of a node without running it, in the terms of target files (`runtimes.facts.When`).

    Ranks, axes and counts are None if they are known only at run time; axes are empty for operators other than
    reductions. The class variables are the same for every case.
    """

    element_types: str
    rank: int
    rank_out: int | None
    axes: str = ""
    keepdims: str = "unset"
    noop: str = "unset"
    negative_axes: bool | None = False
    axes_count: int | None = 0
    all_axes: bool | None = False
    output_types: str = ""
    data: str = "fed"
    rank_second: int = 0
    fed: bool = False
    broadcast: bool = False
    vector: bool = False
    no_values: bool = False
    made: ClassVar[bool] = False
    attributes: ClassVar[frozenset[str]] = frozenset()
    after: ClassVar[str] = ""
    sizes_known: ClassVar[bool] = True
    second_read: ClassVar[bool] = False
    index_depth: ClassVar[int] = 0
    second_value: ClassVar[int] = -1
    shifted: ClassVar[bool] = False
    negative_indices: ClassVar[bool] = False
    holds_zero: ClassVar[bool] = False
    uneven: ClassVar[bool] = False
    overhangs: ClassVar[bool] = False
    constant: ClassVar[bool] = False
    thin: ClassVar[bool] = False
    per_channel: ClassVar[bool] = True
    inputs: ClassVar[int] = 1
    outputs: ClassVar[int] = 1
    first_read: ClassVar[bool] = True
    yielded: ClassVar[bool] = True
    last: ClassVar[str] = ""
    second_types: ClassVar[str] = ""


@dataclass(frozen=True)
class Case:
    """One model of a single node.

    Attributes:
        name: unique in the suite and the same in every run.
        features: how the node is written.
        tag: what is special about values or sizes, which the node does not show: ``huge``, ``tiny``, ``empty`` (a
            dimension of size 0) and so on; empty for ordinary ones.
        expected: the value of each output, from exact arithmetic.
    """

    name: str
    operator: str
    opset: int
    features: Features
    model: bytes
    inputs: Mapping[str, Array]
    expected: tuple[Array, ...]
    tag: str = ""

    @cached_property
    def digest(self) -> str:
        """A fingerprint of model, inputs and expected outputs, so that results of another case are not taken for it."""
        found = hashlib.sha256(self.model)
        for name, value in self.inputs.items():
            found.update(f"{name} {value.dtype} {value.shape}".encode())
            found.update(np.ascontiguousarray(value).tobytes())
        for value in self.expected:
            found.update(f"{value.dtype} {value.shape}".encode())
            found.update(np.ascontiguousarray(value).tobytes())
        return found.hexdigest()[:16]
