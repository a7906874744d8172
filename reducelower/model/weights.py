"""Weights apart from the model: a serialized model without the values of its large initializers, and these put back.

Parsing and serializing a model copies its weights four times. The engine looks at few of them, so the bytes are cut
where large initializers lie, and joined again with the bytes of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from dataclasses import dataclass
from itertools import islice
from math import prod
from typing import Any, NamedTuple, TypeVar

from onnx import TensorProto

from reducelower.model.skeleton import LARGEST_KEPT, without_values
from reducelower.model.wire import LENGTH, Field, MalformedError, Window, varint

__all__ = ["Weights", "cut_off", "with_initializers"]

_LEAST = 1 << 14
"""Initializers of fewer bytes stay in the model."""

_PER_FIELD = 1 << 12
"""Bytes of a model per field of its graph, such as a node, from which on most of it are weights."""

_GRAPH, _INITIALIZER = 7, 5

_NAME, _DATA_TYPE, _DIMS = 8, 2, 1
_STATED = (_DIMS, _DATA_TYPE, _NAME)
"""The fields of a TensorProto that stay in the model."""

_EXTERNAL_DATA, _DATA_LOCATION = 13, 14


class _Weight(NamedTuple):
    """Where an initializer lies in the bytes, and what stands for it."""

    field: Field
    stub: TensorProto


@dataclass(frozen=True, repr=False)
class Weights:
    """The initializers that were cut off.

    Attributes:
        light: the model with initializers without values in their places.
    """

    light: bytes
    _whole: bytes
    _by_name: dict[str, _Weight]

    def tensor(self, name: str) -> TensorProto | None:
        """An initializer that was cut off, with its values; None for any other."""
        found = self._by_name.get(name)
        return None if found is None else TensorProto.FromString(self._whole[found.field.value : found.field.end])

    def put_back(self, model: bytes) -> bytes | None:
        """The bytes of a model with these initializers, each exactly as it was; some may be gone.

        Returns None if one has changed, such as its element type, so that its values would no longer fit.
        """
        changed: list[str] = []

        def whole(field: Field) -> list[memoryview] | None:
            tensor = TensorProto.FromString(model[field.value : field.end])
            known = self._by_name.get(tensor.name)
            if known is not None and tensor != known.stub:
                changed.append(tensor.name)
            if known is None or changed:
                return None
            return [memoryview(self._whole)[known.field.value : known.field.end]]

        pieces = with_initializers(Window(model), 0, whole)
        return None if changed else b"".join(pieces)


def cut_off(model: bytes) -> Weights | None:
    """Cut off the large initializers of the main graph of a serialized model; None if they are not most of it.

    Initializers of the same name, and those with data outside of the model, are left where they are. So is everything
    if the bytes are not written as protobuf writes them.
    """
    if len(model) < _LEAST:
        return None
    by_name: dict[str, _Weight] = {}
    window = Window(model)

    def light(field: Field) -> list[bytes] | None:
        stub = _stub(window, field)
        if stub is None:
            return None
        if stub.name in by_name:
            raise MalformedError("two initializers of one name")
        by_name[stub.name] = _Weight(field, stub)
        return [stub.SerializeToString()]

    try:
        if not _is_mostly_weights(window):
            return None
        pieces = with_initializers(window, _LEAST, light)
    except MalformedError:  # parsing the model tells what is wrong
        return None
    return Weights(b"".join(pieces), model, by_name) if by_name else None


def _is_mostly_weights(window: Window) -> bool:
    """Whether the graph of a serialized model has few fields for its size."""
    graph = _graph(window)
    return next(islice(window.fields(graph.value, graph.end), window.size // _PER_FIELD, None), None) is None


def _stub(window: Window, tensor: Field) -> TensorProto | None:
    """What stands for an initializer whose values are cut off; None if it stays as it is."""
    stated = TensorProto()
    for field in window.fields(tensor.value, tensor.end):
        if field.number in (_EXTERNAL_DATA, _DATA_LOCATION):
            return None
        if field.number in _STATED:
            stated.MergeFromString(window.read(field.start, field.end))
    return without_values(stated) if prod(stated.dims) > LARGEST_KEPT else None


_Piece = TypeVar("_Piece", bound=Sized)


def with_initializers(
    window: Window, least: int, change: Callable[[Field], list[_Piece] | None]
) -> list[bytes | _Piece]:
    """The pieces of a model in which initializers of at least so many bytes are changed; those for which `change` gives
    None stay.

    Raises:
        MalformedError: the bytes are not written as protobuf writes a model.
    """
    graph = _graph(window)
    inside: list[Any] = []
    copied = graph.value
    for field in window.fields(graph.value, graph.end, least):
        changed = change(field) if (field.number, field.kind) == (_INITIALIZER, LENGTH) else None
        if changed is not None:
            head = varint(_INITIALIZER << 3 | LENGTH) + varint(sum(map(len, changed)))
            inside += [window.read(copied, field.start), head, *changed]
            copied = field.end
    inside.append(window.read(copied, graph.end))
    head = varint(_GRAPH << 3 | LENGTH) + varint(sum(map(len, inside)))
    return [window.read(0, graph.start), head, *inside, window.read(graph.end, window.size)]


def _graph(window: Window) -> Field:
    graphs = [field for field in window.fields(0, window.size) if field.number == _GRAPH]
    if [graph.kind for graph in graphs] != [LENGTH]:
        raise MalformedError("no graph, or one in parts")
    return graphs[0]
