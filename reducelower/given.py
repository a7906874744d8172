"""Models in any form that a caller may have, and results in the same form."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeAlias, overload

from onnx import ModelProto

from reducelower.arguments import value_text
from reducelower.model.document import Document

if TYPE_CHECKING:
    import onnx_ir

    from reducelower.ir.light import Light

__all__ = ["AnyModel", "Given", "HasProto", "OfAnyModel", "of_any_model", "take"]

P = ParamSpec("P")


class HasProto(Protocol):
    """An object that holds a model as a message, such as ``torch.onnx.ONNXProgram``."""

    @property
    def model_proto(self) -> ModelProto:
        """The model."""


AnyModel: TypeAlias = "ModelProto | bytes | str | os.PathLike[str] | HasProto | onnx_ir.Model"
"""A model: a message, its bytes, the path of its file, a torch export, or an onnx_ir model."""


@dataclass(frozen=True)
class Given:
    """A model from a caller, and the form in which the caller passed it.

    Attributes:
        document: the model.
        folder: the folder with its external data, if the model was read from a file.
        is_bytes: whether the caller passed bytes and gets bytes back.
        light: the caller's onnx_ir model, without its weights.
    """

    document: Document
    folder: str | None = None
    is_bytes: bool = False
    light: Light | None = None

    def options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Options with the folder of the file as `base_dir`, unless they name another."""
        is_named = self.folder is None or options.get("base_dir") is not None
        return dict(options) if is_named else {**options, "base_dir": self.folder}

    def back(self, document: Document) -> Any:
        """A result in the form of the argument; a message if that was a file or a torch program."""
        if self.is_bytes:
            return document.data
        return document.message if self.light is None else self.light.restored(document.message)


def take(model: Any, *, name: str = "model", in_place: bool = False) -> Given:
    """Read a model that is passed in any form.

    Args:
        model: a ModelProto, its bytes, a path, a ``torch.onnx.ONNXProgram`` or an ``onnx_ir.Model``.
        name: the name of the argument, for messages.
        in_place: whether the model itself will be changed; this works only for a ModelProto.

    Raises:
        TypeError: the model has none of these forms, or cannot be changed in place.
        UnreadableModelError: a file is missing, or the file or the bytes are not a model.
    """
    if isinstance(model, ModelProto):
        return Given(Document(model))
    if in_place:
        raise TypeError(f"in_place changes an onnx.ModelProto, and {name} is {value_text(model)}")
    if isinstance(model, bytes | bytearray | memoryview):
        return Given(Document(data=bytes(model)), is_bytes=True)
    if isinstance(model, str | os.PathLike):
        from reducelower.files import read_model

        return Given(read_model(model, whole=True).document, str(Path(model).parent))
    if type(model).__module__.partition(".")[0] == "onnx_ir" and hasattr(model, "graph"):
        from reducelower.ir.light import lighten

        light = lighten(model)
        return Given(Document(light.proto), light=light)
    proto = getattr(model, "model_proto", None)
    if isinstance(proto, ModelProto):
        return Given(Document(proto))
    raise TypeError(
        f"{name} must be an onnx.ModelProto, its bytes, a path, a torch.onnx.ONNXProgram or an onnx_ir.Model, "
        f"not {value_text(model)}"
    )


class OfAnyModel(Protocol[P]):
    """A function from a model to a model of the same form."""

    __name__: str

    @overload
    def __call__(self, model: bytes, *arguments: P.args, **options: P.kwargs) -> bytes: ...

    @overload
    def __call__(
        self, model: ModelProto | str | os.PathLike[str] | HasProto, *arguments: P.args, **options: P.kwargs
    ) -> ModelProto: ...

    @overload
    def __call__(self, model: onnx_ir.Model, *arguments: P.args, **options: P.kwargs) -> onnx_ir.Model: ...


def of_any_model(function: Callable[Concatenate[Document, P], Document]) -> OfAnyModel[P]:
    """Make a function on documents accept a model in any form; for a file, it also gets its folder as `base_dir`."""

    @wraps(function)
    def converted(model: Any, *arguments: P.args, **options: P.kwargs) -> Any:
        given = take(model, in_place=bool(options.get("in_place")))
        return given.back(function(given.document, *arguments, **given.options(options)))

    return converted
