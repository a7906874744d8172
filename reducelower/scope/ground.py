"""What all scopes of one run stand on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from onnx import TensorProto, TypeProto

from reducelower.model.census import Stated
from reducelower.model.inference import Inference
from reducelower.model.names import Names
from reducelower.model.schemas import type_string
from reducelower.model.value_info import sizes, without_made_up_symbols
from reducelower.scope.fold import Folding
from reducelower.scope.ranks import Ranks
from reducelower.scope.values import Values

__all__ = ["Ground", "KnownType"]


class KnownType(NamedTuple):
    """What the type of a value says.

    Attributes:
        proto: the type, without symbols that inference made up.
        data: its bytes.
        is_whole: whether it leaves nothing to be inferred: neither what it is nor, of a tensor, the shape.
        element_type: None if it does not say, or is not of a tensor.
        shape: None standing for a size that is not a number; None if even the rank is unknown.
        leaves_sizes_open: whether some size has neither a number nor a name, so that inference may know more.
    """

    proto: TypeProto
    data: bytes
    is_whole: bool
    element_type: int | None
    shape: tuple[int | None, ...] | None
    leaves_sizes_open: bool


def known_type(found: TypeProto) -> KnownType:
    """What a type says."""
    is_tensor, known = found.WhichOneof("value") == "tensor_type", sizes(found)
    proto = without_made_up_symbols(found)
    return KnownType(
        proto,
        proto.SerializeToString(),
        type_string(found) is not None and (known is not None or not is_tensor),
        found.tensor_type.elem_type or None if is_tensor else None,
        None if known is None else tuple(known),
        any(dim.WhichOneof("value") is None for dim in proto.tensor_type.shape.dim),
    )


@dataclass(eq=False)
class Ground:
    """What all scopes of one run stand on: names, overrides, inference and how constants are written.

    Attributes:
        names: gives out fresh names.
        source: the model as it was, and the types that inference finds in it.
        opset: opset version of the target.
        element_types: element types that the user declared, by value name.
        ranks: ranks that the user declared, by value name.
        base_dir: folder that external data locations are relative to.
        freeze_defaults: whether an initializer that is also a graph input counts as constant.
        overridable: whether such an initializer is a default the caller may override (IR version 4 and later).
        initializers_stand_alone: whether an initializer need not be a graph input (IR version 4 and later).
        is_last_attempt: whether functions have been copied for their calls where that could help, so that what they
            are handed has to be taken as it comes.
        values: the numbers of values of constants, which other runs may share.
        stated: what the main graph states, where that can be told in short.
        weight: gives the initializers of the main graph by name, where the model has none of their values.
        frozen: names of the defaults that were taken for constants.
        folding: what is computed from constants.
        trusted_ranks: the graph and name of each value whose rank was taken from what is stated of it.
        trusts_sizes: whether more than ranks was taken from what is stated.
        followed_ranks: ranks that operators tell.
        told: element types that were followed back; see `reducelower.model.element_types.follow`.
    """

    names: Names
    source: Inference
    opset: int
    element_types: Mapping[str, int]
    ranks: Mapping[str, int]
    base_dir: Path | None
    freeze_defaults: bool
    overridable: bool
    initializers_stand_alone: bool
    is_last_attempt: bool = False
    values: Values = field(default_factory=Values)
    stated: Stated | None = None
    weight: Callable[[str], TensorProto | None] = lambda name: None
    frozen: set[str] = field(default_factory=set)
    folding: Folding = field(default_factory=Folding)
    trusted_ranks: list[tuple[Any, str]] = field(default_factory=list)
    trusts_sizes: bool = False
    followed_ranks: Ranks = field(init=False)
    told: dict[tuple[Any, str], int] = field(default_factory=dict)
    _known_types: dict[bytes, KnownType] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Take ranks that contradict what is stated as inference takes them."""
        self.followed_ranks = Ranks(objects=not self.source.is_lenient)

    def check_what_was_trusted(self) -> None:
        """Look into what the model states, as far as it was taken, where it does not state all that was asked.

        Exporters that leave types out leave wrong ones in. Inference looks into all of them; where it did not run, for
        operators told the ranks that were asked for, nobody has.

        Raises:
            ContradictionError: it is not what the nodes yield.
        """
        if self.source.has_run or not self.followed_ranks.were_followed:
            return
        if self.trusts_sizes:
            self.source.types(())
        for graph, name in self.trusted_ranks:
            self.followed_ranks.rank(name, graph)

    def let_go(self) -> None:
        """Forget what was found of values, when no more is asked: the graphs they are in hold on to this.

        Otherwise the model, weights and all, would wait for the garbage collector.
        """
        self.folding = Folding()
        self.trusted_ranks = []
        self.told = {}

    def known_type(self, found: TypeProto) -> KnownType:
        """What a type says; there is one of each, since thousands of values have the same."""
        key = found.SerializeToString()
        if key not in self._known_types:
            self._known_types[key] = known_type(found)
        return self._known_types[key]
