"""The conversions as passes over onnx_ir models."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import onnx_ir as ir
from onnx import ModelProto

from reducelower.api import convert_version, expand
from reducelower.arguments import check_version
from reducelower.ir.light import lighten
from reducelower.options import check_names

__all__ = ["ConvertVersionPass", "ExpandPass", "RaisePass"]


class _Conversion(ir.passes.FunctionalPass):
    """A conversion of ModelProto as a pass: the input model does not change, and the result shares its tensors.

    Tensors in files are only read if they have up to 1024 elements, such as axes and shapes.
    """

    def __init__(self, convert: Callable[..., ModelProto], **options: Any) -> None:
        super().__init__()
        bound = inspect.signature(convert).bind(None, **options)
        check_names(bound.arguments.get("options", ()))
        # A pass may run more than once, but an iterator would be empty the second time.
        arguments = {name: tuple(value) if isinstance(value, Iterator) else value for name, value in options.items()}
        self._convert = partial(convert, **arguments)

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Convert a copy of the model, and return whether the result differs.

        The result shares the weights of the input model, and keeps names, shapes, metadata and functions. Of what is
        not serialized (`meta`), it keeps that of the model.

        Raises:
            ConversionError: something cannot be converted; it has every reason. Inside `onnx_ir.passes.Sequential`
                it is the cause of the PassError.
        """
        light = lighten(model)
        converted = self._convert(light.proto)
        if converted.SerializeToString() == light.proto.SerializeToString():
            return ir.passes.PassResult(model.clone(), modified=False)
        return ir.passes.PassResult(light.restored(converted), modified=True)


class ConvertVersionPass(_Conversion):
    """Convert a model to another opset version of the default domain, up or down.

    Example::

        onnx_ir.passes.Sequential(ConvertVersionPass(13), onnx_ir.passes.common.RemoveUnusedNodesPass())(model)
    """

    def __init__(self, target_version: int, **options: Any) -> None:
        """Take the arguments of `reducelower.convert_version`."""
        check_version("target_version", target_version)
        super().__init__(convert_version, target_version=target_version, **options)


class ExpandPass(_Conversion):
    """Replace composite Reduce operators by the bodies of a rule book, at the model's own opset version."""

    def __init__(self, **options: Any) -> None:
        """Take the arguments of `reducelower.expand`."""
        super().__init__(expand, **options)


class RaisePass(_Conversion):
    """Fold primitive forms into the composite operators they spell out: the way back from `ExpandPass`."""

    def __init__(self, **options: Any) -> None:
        """Take the arguments of `reducelower.raise_reductions`."""
        from reducelower.recompose import raise_reductions

        super().__init__(raise_reductions, **options)
