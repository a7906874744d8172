"""The public functions from bytes to bytes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from reducelower.api import expansion
from reducelower.arguments import check_arguments
from reducelower.legalization.draft import Source
from reducelower.legalization.drafting import legal_draft
from reducelower.options import Book, IrVersion, Settings, Target

__all__ = ["convert_bytes", "expand_bytes"]


def convert_bytes(
    serialized: bytes,
    target_version: int,
    *,
    without: Iterable[str] = (),
    without_types: Iterable[str] = (),
    rules: Book = "stable",
    ir_version: IrVersion = "auto",
    freeze_defaults: bool = False,
    element_types: Mapping[str, str] | None = None,
    ranks: Mapping[str, int] | None = None,
    base_dir: str | os.PathLike[str] | None = None,
) -> bytes:
    """Convert a serialized model to another opset version: `convert_version` from bytes to bytes.

    It gives what parsing, `convert_version` and serializing give, and is faster than these: nodes that no rule touches
    are neither parsed nor written again, so that they stay the very bytes they were.

    Args:
        serialized: a ModelProto as bytes, the content of an ONNX file; it is trusted to be valid.
        target_version: see `convert_version`, as all that follow.
        without: operators that must not remain.
        without_types: element types that nothing added may use.
        rules: the rule book that bodies come from.
        ir_version: see `legalize`.
        freeze_defaults: take initializers that are also graph inputs for constants.
        element_types: element types of values that the model does not state.
        ranks: ranks of values that the model does not state.
        base_dir: folder that external data locations are relative to.

    Raises:
        ConversionError: something cannot be expressed at that opset version; it holds every reason.
        UnreadableModelError: the bytes are no model.
        ValueError: there is no such opset version.
    """
    check_arguments(serialized=serialized, target_version=target_version, without=without, without_types=without_types)
    check_arguments(rules=rules, ir_version=ir_version, element_types=element_types, ranks=ranks, base_dir=base_dir)
    target = Target(target_version, frozenset(without), frozenset(without_types))
    settings = Settings(target, rules, ir_version, freeze_defaults, element_types, ranks, base_dir)
    return legal_draft(Source.of_bytes(serialized), target, settings, report=False)[0].serialize()


def expand_bytes(
    serialized: bytes,
    *,
    ops: Iterable[str] | None = None,
    rules: Book = "spec",
    without_types: Iterable[str] = (),
    freeze_defaults: bool = False,
    element_types: Mapping[str, str] | None = None,
    ranks: Mapping[str, int] | None = None,
    base_dir: str | os.PathLike[str] | None = None,
) -> bytes:
    """Replace composite Reduce operators of a serialized model: `expand` from bytes to bytes, see `convert_bytes`.

    Args:
        serialized: a ModelProto as bytes.
        ops: operators to replace; None means every operator the rule book has a rule for.
        rules: see `expand`, as all that follow.
        without_types: element types that nothing added may use.
        freeze_defaults: see `legalize`.
        element_types: element types of values that the model does not state.
        ranks: ranks of values that the model does not state.
        base_dir: folder that external data locations are relative to.

    Raises:
        ConversionError: a node cannot be replaced; it holds every reason.
        UnreadableModelError: the bytes are no model.
    """
    check_arguments(serialized=serialized, ops=ops, rules=rules, without_types=without_types)
    check_arguments(element_types=element_types, ranks=ranks, base_dir=base_dir)
    target, settings = expansion(ops, rules, without_types, freeze_defaults, element_types, ranks, base_dir)
    return legal_draft(Source.of_bytes(serialized), target, settings, report=False)[0].serialize()
