"""What all scopes of one run share; constant values, each stored once, in whichever field of a tensor it is."""

from __future__ import annotations

import os
from math import prod
from typing import TYPE_CHECKING

from onnx import TensorProto

from reducelower.files import DataFolder
from reducelower.files.external import read_tensor
from reducelower.model.document import Names
from reducelower.model.numbers import value_key
from reducelower.model.skeleton import DEFAULTS_SINCE, LARGEST_CONSTANT, declare, skeleton
from reducelower.types import Inference

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from onnx import ModelProto

    from reducelower.model.document import Document
    from reducelower.model.numbers import Array
    from reducelower.types.witnesses import Witnesses

__all__ = ["Ground", "Stored", "Values", "writes_initializers"]


_SPELLED_IN: Mapping[int, str] = {TensorProto.INT64: "int64_data", TensorProto.INT32: "int32_data"}
"""The fields of these element types besides ``raw_data``. No floats: 0.0 == -0.0, but their bits differ."""


class Stored:
    """A value that is stored once: equal values are one object, so that answers with values can be compared."""

    __slots__ = ("array",)

    def __init__(self, array: Array) -> None:
        self.array = array


class Values:
    """The values of some runs. `size` is their total in bytes."""

    def __init__(self) -> None:
        self.size = 0
        self._stored: dict[Hashable, Stored] = {}
        self._spelled: dict[Hashable, Stored] = {}

    def of(self, array: Array) -> Stored:
        """A value, stored."""
        key = value_key(array)
        if key not in self._stored:
            self._stored[key] = Stored(array)
            self.size += array.nbytes
        return self._stored[key]

    def of_tensor(self, tensor: TensorProto, folder: DataFolder | None = None) -> Stored | None:
        """The value of a tensor; None if it is large, or if its data is external and there is no folder.

        Raises:
            RefusedError: it cannot be read.
        """
        dims = tuple(tensor.dims[:])  # slicing to a list halves the time
        if prod(dims) > LARGEST_CONSTANT:
            return None
        if tensor.data_location == TensorProto.EXTERNAL:
            # Not cached by its serialized form: a file of the same name may hold something else.
            is_in_file = folder is not None and len(tensor.external_data)  # else a sparse one that cannot be read
            return self.of(read_tensor(tensor, folder)) if is_in_file else None
        content = tensor.raw_data or tuple(getattr(tensor, _SPELLED_IN.get(tensor.data_type, ""), ()))
        if not content or tensor.HasField("segment"):
            return self.of(read_tensor(tensor))
        spelling = (tensor.data_type, dims, content)
        stored = self._spelled.get(spelling)
        if stored is None:
            stored = self._spelled[spelling] = self.of(read_tensor(tensor))
        return stored


def writes_initializers(model: ModelProto, asked: int | str) -> bool:
    """Whether initializers need not be graph inputs in the result, by its newest possible IR version."""
    newest = asked if isinstance(asked, int) else model.ir_version if asked == "keep" else DEFAULTS_SINCE
    return newest >= DEFAULTS_SINCE


class Ground:
    """What all scopes of one run share: names, types, overrides, and how constants are written.

    Attributes:
        source: the model, which nobody edits.
        names: makes fresh names.
        resolver: knows the types of the model before any rewrite, with symbolic sizes.
        opset: opset version of the target.
        assumes_nonempty: whether no dimension is zero when the model runs.
        data_folder: the folder of external data; None if unknown.
        overridable: whether callers may override such an initializer (IR version 4 and later).
        writes_initializers: whether added constants become initializers, which need not be graph inputs from IR version
            4 on; otherwise Constant nodes.
        values: numbers of constant values, which other runs may share.
        frozen: names of initializers whose defaults were used as constants.
        witnesses: which sizes are not zero; None until a rule asks.
    """

    def __init__(
        self,
        source: Document,
        opset: int,
        *,
        element_types: Mapping[str, str] | None = None,
        ranks: Mapping[str, int] | None = None,
        base_dir: str | os.PathLike[str] | None = None,
        freeze_defaults: bool = False,
        ir_version: int | str = "auto",
        assumes_nonempty: bool = False,
        values: Values | None = None,
    ) -> None:
        """Start a run over a model. `options.Options` says what most arguments mean."""
        self.source = source
        self.names = Names(source)
        message = source.message
        self.overridable = message.ir_version >= DEFAULTS_SINCE
        self.writes_initializers = writes_initializers(message, ir_version)
        if element_types or ranks:
            message = skeleton(message, LARGEST_CONSTANT)
            declare(message, element_types or {}, ranks or {})
        self.resolver = Inference(message, freezes_defaults=freeze_defaults)
        self.opset = opset
        self.assumes_nonempty = assumes_nonempty
        self.data_folder = None if base_dir is None else DataFolder.of(base_dir)
        self.values = Values() if values is None else values
        self.frozen: set[str] = set()
        self.witnesses: Witnesses | None = None

    def clear_caches(self) -> None:
        """Clear the caches at the end of a run.

        Their graphs refer back to this object. The cycle would keep the model and its weights until garbage collection.
        """
        self.resolver.clear()
        self.witnesses = None
