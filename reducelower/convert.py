"""The public functions: convert a model, expand its composite reductions, check what would change."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from onnx import ModelProto

from reducelower.plan import Plan
from reducelower.target import Target

__all__ = ["Legalized", "check", "convert_version", "expand", "legalize"]


@dataclass(frozen=True)
class Legalized:
    """A legal model and the plan that says how it became so."""

    model: ModelProto
    plan: Plan


def legalize(
    model: ModelProto,
    target: Target,
    *,
    rules: str | os.PathLike[str] = "spec",
    ir_version: Literal["auto", "keep"] | int = "auto",
    freeze_defaults: bool = False,
    element_types: Mapping[str, str] | None = None,
    ranks: Mapping[str, int] | None = None,
    base_dir: str | os.PathLike[str] | None = None,
    in_place: bool = False,
) -> Legalized:
    """Make a model legal for a target, or raise `ConversionError` with every reason why not."""
    raise NotImplementedError


def convert_version(
    model: ModelProto,
    target_version: int,
    *,
    without: Iterable[str] = (),
    without_types: Iterable[str] = (),
    rules: str | os.PathLike[str] = "spec",
    ir_version: Literal["auto", "keep"] | int = "auto",
    freeze_defaults: bool = False,
    element_types: Mapping[str, str] | None = None,
    ranks: Mapping[str, int] | None = None,
    base_dir: str | os.PathLike[str] | None = None,
    in_place: bool = False,
) -> ModelProto:
    """Convert a model to another opset version of the default domain."""
    raise NotImplementedError


def expand(
    model: ModelProto,
    *,
    ops: Iterable[str] | None = None,
    rules: str | os.PathLike[str] = "spec",
    without_types: Iterable[str] = (),
    freeze_defaults: bool = False,
    element_types: Mapping[str, str] | None = None,
    ranks: Mapping[str, int] | None = None,
    base_dir: str | os.PathLike[str] | None = None,
    in_place: bool = False,
) -> ModelProto:
    """Replace composite Reduce operators by the bodies of the rule book, at the model's own opset version."""
    raise NotImplementedError


def check(
    model: ModelProto,
    target_version: int | None = None,
    *,
    target: Target | None = None,
    rules: str | os.PathLike[str] = "spec",
    ir_version: Literal["auto", "keep"] | int = "auto",
    freeze_defaults: bool = False,
    element_types: Mapping[str, str] | None = None,
    ranks: Mapping[str, int] | None = None,
    base_dir: str | os.PathLike[str] | None = None,
) -> Plan:
    """Say what a conversion would rewrite and what it would refuse; raises nothing of the model's making."""
    raise NotImplementedError
