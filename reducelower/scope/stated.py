"""The types that a graph states: in value_info, and of its inputs, outputs and sparse initializers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from itertools import count
from operator import attrgetter

from onnx import FunctionProto, GraphProto, TensorProto, TypeProto, ValueInfoProto

from reducelower.model.census import Stated
from reducelower.model.schemas import type_string
from reducelower.model.value_info import tensor_type

__all__ = ["StatedTypes", "places"]


class StatedTypes:
    """What one graph or function body states; of two entries for one value, the last counts."""

    def __init__(self, holder: GraphProto | FunctionProto, columns: Stated | None) -> None:
        """Take the graph, and its value_info as columns if those are at hand."""
        self._holder = holder
        self._columns = columns
        self._has_removed = False

    def __contains__(self, name: str) -> bool:
        return name in self.places or name in self._outside_nodes

    def type(self, name: str) -> TypeProto | None:
        """The stated type of a value; None if none is."""
        if name in self._outside_nodes:
            return self._outside_nodes[name]
        place = self.places.get(name)
        return None if place is None else self._holder.value_info[place].type

    @cached_property
    def places(self) -> dict[str, int]:
        """Positions in value_info by name.

        Holding 50,000 messages instead of positions takes five times as long.
        """
        values = self._holder.value_info
        if self._columns is not None and not self._has_removed and len(self._columns.names) == len(values):
            return dict(zip(map(bytes.decode, self._columns.names), count()))
        return places(values)

    @cached_property
    def _outside_nodes(self) -> dict[str, TypeProto]:
        """The stated types of graph inputs, graph outputs and sparse initializers."""
        holder = self._holder
        known: dict[str, TypeProto] = {}
        if isinstance(holder, GraphProto):
            for value in (*holder.output, *holder.input):
                # The inputs of a Scan body need not have types; inference knows them.
                if value.name not in self.places or type_string(value.type) is not None:
                    known[value.name] = value.type
            for sparse in holder.sparse_initializer:
                dense = TensorProto(data_type=sparse.values.data_type, dims=sparse.dims)
                known[sparse.values.name] = tensor_type(dense)
        return known

    @property
    def element_types(self) -> Collection[int]:
        """The element types that value_info states or stated before a removal; 0 stands for anything but a tensor."""
        found = None if self._columns is None else self._columns.element_types
        return set(map(_ELEMENT_TYPE, self._holder.value_info)) if found is None else found

    def add(self, entries: bytes) -> None:
        """State types, given as bytes of a GraphProto."""
        self._holder.MergeFromString(entries)
        if self._columns is not None:
            self._columns.add(entries)

    def drop_positions(self) -> None:
        """Find the positions anew, since entries were removed."""
        self._has_removed = True
        self.__dict__.pop("places", None)


def places(values: Sequence[ValueInfoProto] | Sequence[TensorProto]) -> dict[str, int]:
    """Positions by name."""
    return dict(zip(map(_NAME, values), count()))


_NAME = attrgetter("name")
_ELEMENT_TYPE = attrgetter("type.tensor_type.elem_type")
