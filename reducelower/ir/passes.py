"""The conversions as passes over onnx_ir models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import onnx_ir as ir
from onnx import ModelProto

from reducelower.api import convert_version, expand
from reducelower.arguments import check_arguments
from reducelower.ir.light import lighten

if TYPE_CHECKING:
    from reducelower.options import Book, IrVersion

__all__ = ["ConvertVersionPass", "ExpandPass", "RaisePass"]


class _Conversion(ir.passes.FunctionalPass):
    """A conversion of ModelProto as a pass: the model given stays as it is, and the result shares its tensors."""

    def __init__(self, convert: Callable[..., ModelProto], **options: Any) -> None:
        super().__init__()
        self._convert = partial(convert, **options)

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Convert a model, which stays as it is, and say whether the result differs.

        The result holds the very tensors of the model given, and keeps names, shapes, metadata (`meta` and
        `metadata_props`) and functions.

        Raises:
            ConversionError: something cannot be converted; it holds every reason. Inside `onnx_ir.passes.Sequential`
                it is the cause of the PassError.
        """
        light = lighten(model)
        converted = self._convert(light.proto)
        if converted.SerializeToString() == light.proto.SerializeToString():
            return ir.passes.PassResult(model.clone(), modified=False)
        return ir.passes.PassResult(light.restored(converted), modified=True)


class ConvertVersionPass(_Conversion):
    """Convert a model to another opset version of the default domain, up or down.

    The same as `reducelower.convert_version`, with the same options except ``base_dir``, ``in_place`` and
    ``validate``: tensors of onnx_ir know their folder, the pass is functional, and it always validates. Of tensors that
    lie in files those of up to 1024 elements are read, as axes and shapes are; no others.

    Example::

        onnx_ir.passes.Sequential(ConvertVersionPass(13), onnx_ir.passes.common.RemoveUnusedNodesPass())(model)
    """

    def __init__(
        self,
        target_version: int,
        *,
        without: Iterable[str] = (),
        without_types: Iterable[str] = (),
        rules: Book = "stable",
        ir_version: IrVersion = "auto",
        freeze_defaults: bool = False,
        element_types: Mapping[str, str] | None = None,
        ranks: Mapping[str, int] | None = None,
    ) -> None:
        """Take the arguments of `reducelower.convert_version`."""
        check_arguments(target_version=target_version, without=without, without_types=without_types)
        check_arguments(rules=rules, ir_version=ir_version, element_types=element_types, ranks=ranks)
        super().__init__(
            convert_version,
            target_version=target_version,
            without=frozenset(without),
            without_types=frozenset(without_types),
            rules=rules,
            ir_version=ir_version,
            freeze_defaults=freeze_defaults,
            element_types=dict(element_types or {}),
            ranks=dict(ranks or {}),
        )


class ExpandPass(_Conversion):
    """Replace composite Reduce operators by the bodies of a rule book, at the model's own opset version.

    The same as `reducelower.expand`, with the same options except those that `ConvertVersionPass` lacks.
    """

    def __init__(
        self,
        *,
        ops: Iterable[str] | None = None,
        rules: Book = "spec",
        without_types: Iterable[str] = (),
        freeze_defaults: bool = False,
        element_types: Mapping[str, str] | None = None,
        ranks: Mapping[str, int] | None = None,
    ) -> None:
        """Take the arguments of `reducelower.expand`."""
        check_arguments(ops=ops, rules=rules, without_types=without_types, element_types=element_types, ranks=ranks)
        super().__init__(
            expand,
            ops=None if ops is None else frozenset(ops),
            rules=rules,
            without_types=frozenset(without_types),
            freeze_defaults=freeze_defaults,
            element_types=dict(element_types or {}),
            ranks=dict(ranks or {}),
        )


class RaisePass(_Conversion):
    """Fold primitive forms into the composite Reduce operators they spell out: the way back from `ExpandPass`.

    The same as `reducelower.raise_reductions`, with the same options except ``base_dir`` and ``in_place``; see
    `ConvertVersionPass`.
    """

    def __init__(
        self,
        *,
        ops: Iterable[str] | None = None,
        rules: Iterable[Book] | None = None,
        by_hand: bool = True,
        freeze_defaults: bool = False,
        element_types: Mapping[str, str] | None = None,
        ranks: Mapping[str, int] | None = None,
    ) -> None:
        """Take the arguments of `reducelower.raise_reductions`; no rules mean those that come with reducelower."""
        check_arguments(ops=ops, element_types=element_types, ranks=ranks)
        if rules is not None:
            check_arguments(books=rules)
        from reducelower.recompose import BOOKS, raise_reductions

        super().__init__(
            raise_reductions,
            ops=None if ops is None else frozenset(ops),
            rules=BOOKS if rules is None else tuple(rules),
            by_hand=by_hand,
            freeze_defaults=freeze_defaults,
            element_types=dict(element_types or {}),
            ranks=dict(ranks or {}),
        )
