"""The state that all scopes of one run share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from onnx import TensorProto, TypeProto

from reducelower.files import DataFolder
from reducelower.model.census import Stated
from reducelower.model.names import Names
from reducelower.model.schemas import type_string
from reducelower.model.value_info import sizes, without_made_up_symbols
from reducelower.scope.fold import Folding
from reducelower.scope.values import Values
from reducelower.types import Inference, Resolver
from reducelower.types.witnesses import Witnesses

__all__ = ["Ground", "KnownType"]


class KnownType(NamedTuple):
    """A type and its parts.

    Attributes:
        proto: the type, without symbols that inference invented.
        data: the same, serialized.
        is_whole: whether it leaves nothing to inference: the kind of value is known and, for a tensor, the shape.
        element_type: None if unknown, or not a tensor.
        shape: with None for a size that is not a number; None if the rank is unknown.
        leaves_sizes_open: whether some size has neither number nor name, so that inference may know more.
    """

    proto: TypeProto
    data: bytes
    is_whole: bool
    element_type: int | None
    shape: tuple[int | None, ...] | None
    leaves_sizes_open: bool


def known_type(found: TypeProto) -> KnownType:
    """Take a type apart."""
    is_tensor, known = found.WhichOneof("value") == "tensor_type", sizes(found)
    proto = without_made_up_symbols(found)
    return KnownType(
        proto,
        proto.SerializeToString(),
        type_string(found) is not None and (known is not None or not is_tensor),
        found.tensor_type.elem_type or None if is_tensor else None,
        None if known is None else tuple(known),
        None in [dim.WhichOneof("value") for dim in proto.tensor_type.shape.dim],
    )


@dataclass(eq=False)
class Ground:
    """The state that all scopes of one run share: names, overrides, inference, and how constants are written.

    Attributes:
        names: gives out fresh names.
        source: the types of the model before any rewrite.
        opset: opset version of the target.
        element_types: element types that the user declared, by value name.
        ranks: ranks that the user declared, by value name.
        data_folder: where external data may lie; None if that is not known.
        freeze_defaults: whether an initializer that is also a graph input counts as constant.
        overridable: whether callers may override such an initializer (IR version 4 and later).
        initializers_stand_alone: whether an initializer need not be a graph input (IR version 4 and later).
        assumes_nonempty: whether no dimension is zero when the model runs.
        values: numbers of constant values, which other runs may share.
        stated: the types that the main graph states, if they are at hand as columns.
        weight: gives initializers of the main graph by name, if the model itself lacks their values.
        frozen: names of initializers whose defaults were used as constants.
        folding: cache of folded constants.
        trusted_ranks: graph and name of each value whose rank was taken from its stated type.
        trusts_sizes: whether more than ranks was taken from stated types.
        follows_nodes: whether a rank or shape was worked out from nodes, since the model does not state it.
        resolver: what is known about values, with sizes as names.
        witnesses: which sizes are not zero; None until it is asked.
    """

    names: Names
    source: Inference
    opset: int
    element_types: Mapping[str, int]
    ranks: Mapping[str, int]
    data_folder: DataFolder | None
    freeze_defaults: bool
    overridable: bool
    initializers_stand_alone: bool
    assumes_nonempty: bool = False
    values: Values = field(default_factory=Values)
    stated: Stated | None = None
    weight: Callable[[str], TensorProto | None] = lambda name: None
    frozen: set[str] = field(default_factory=set)
    folding: Folding = field(default_factory=Folding)
    trusted_ranks: list[tuple[Any, str]] = field(default_factory=list)
    trusts_sizes: bool = False
    follows_nodes: bool = False
    resolver: Resolver = field(init=False)
    witnesses: Witnesses | None = None
    _known_types: dict[bytes, KnownType] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Handle what contradicts stated types as inference handles them."""
        self.resolver = self.source.resolver_of_run()

    def check_what_was_trusted(self) -> None:
        """Check the stated types that were used, if the model does not state all types that were needed.

        Exporters that omit types also state wrong ones.

        Raises:
            ContradictionError: a stated type contradicts what nodes compute.
        """
        if not self.follows_nodes:
            return
        if self.trusts_sizes:
            self.source.check()
        for graph, name in self.trusted_ranks:
            self.resolver.rank(name, graph)

    def clear_caches(self) -> None:
        """Clear the caches at the end of a run: their graphs refer back to this object.

        This cycle would keep the model and its weights until the garbage collector runs.
        """
        self.folding = Folding()
        self.trusted_ranks = []
        self.resolver = Resolver()
        self.witnesses = None

    def known_type(self, found: TypeProto) -> KnownType:
        """Take a type apart, cached, since thousands of values have the same type."""
        key = found.SerializeToString()
        if key not in self._known_types:
            self._known_types[key] = known_type(found)
        return self._known_types[key]
