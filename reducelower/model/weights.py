"""Cut the values of large initializers out of a serialized model, and put them back into the result.

Parsing and serializing a model copies its weights four times, and the engine reads few of them. So the bytes are cut
at the large initializers, and joined again with the bytes of the result.
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
"""The least bytes per field of the graph, such as a node, of a model that is mostly weights."""

_GRAPH, _INITIALIZER = 7, 5

_NAME, _DATA_TYPE, _DIMS = 8, 2, 1
_STATED = (_DIMS, _DATA_TYPE, _NAME)
"""The fields of a TensorProto that stay in the model."""

_EXTERNAL_DATA, _DATA_LOCATION = 13, 14


class _Weight(NamedTuple):
    """The place of an initializer in the bytes, and the stub in its place."""

    field: Field
    stub: TensorProto


@dataclass(frozen=True, repr=False)
class Weights:
    """The initializers that were cut off.

    Attributes:
        light: the model with stubs in their places, which have no values.
    """

    light: bytes
    _whole: bytes
    _by_name: dict[str, _Weight]

    def tensor(self, name: str) -> TensorProto | None:
        """An initializer that was cut off, with its values; None for any other."""
        weight = self._by_name.get(name)
        return None if weight is None else TensorProto.FromString(self._whole[weight.field.value : weight.field.end])

    def put_back(self, model: bytes) -> bytes | None:
        """The bytes of a model with these initializers, each exactly as it was; the model may lack some.

        Returns None if a stub has changed, such as its element type, so that its values would no longer fit.
        """
        changed: list[str] = []

        def whole(field: Field) -> list[memoryview] | None:
            tensor = TensorProto.FromString(model[field.value : field.end])
            weight = self._by_name.get(tensor.name)
            if weight is not None and tensor != weight.stub:
                changed.append(tensor.name)
            if weight is None or changed:
                return None
            return [memoryview(self._whole)[weight.field.value : weight.field.end]]

        pieces = with_initializers(Window(model), 0, whole)
        return None if changed else b"".join(pieces)


def cut_off(model: bytes) -> Weights | None:
    """Cut off the large initializers of the main graph of a serialized model; None if they are not most of it.

    Initializers with external data stay. Everything stays if two initializers share a name, or if the bytes are not
    written as protobuf writes them.
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
    except MalformedError:  # parsing the model will report what is wrong
        return None
    return Weights(b"".join(pieces), model, by_name) if by_name else None


def _is_mostly_weights(window: Window) -> bool:
    """Whether the graph of a serialized model has few fields for its size."""
    graph = _graph(window)
    return next(islice(window.fields(graph.value, graph.end), window.size // _PER_FIELD, None), None) is None


def _stub(window: Window, tensor: Field) -> TensorProto | None:
    """The stub for an initializer whose values are cut off; None if it keeps them."""
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
    """The pieces of a model with changed initializers; shorter than `least` or with None from `change`, they stay.

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
