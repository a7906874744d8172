"""The state that all scopes of one run share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from onnx import TensorProto

from reducelower.files import DataFolder
from reducelower.model.names import Names
from reducelower.scope.values import Values
from reducelower.types import Inference, Resolver
from reducelower.types.witnesses import Witnesses

__all__ = ["Ground"]


@dataclass(eq=False)
class Ground:
    """The state that all scopes of one run share: names, overrides, inference, and how constants are written.

    Attributes:
        names: gives out fresh names.
        source: the types of the model before any rewrite.
        opset: opset version of the target.
        data_folder: where external data may lie; None if that is not known.
        freeze_defaults: whether an initializer that is also a graph input counts as constant.
        overridable: whether callers may override such an initializer (IR version 4 and later).
        initializers_stand_alone: whether an initializer need not be a graph input (IR version 4 and later).
        assumes_nonempty: whether no dimension is zero when the model runs.
        values: numbers of constant values, which other runs may share.
        weight: gives initializers of the main graph by name, if the model itself lacks their values.
        frozen: names of initializers whose defaults were used as constants.
        trusts_sizes: whether stated sizes were taken where nodes leave them open.
        lacks_types: whether something was asked about a value whose type the model does not state.
        resolver: what is known about values, with sizes as names.
        witnesses: which sizes are not zero; None until it is asked.
    """

    names: Names
    source: Inference
    opset: int
    data_folder: DataFolder | None
    freeze_defaults: bool
    overridable: bool
    initializers_stand_alone: bool
    assumes_nonempty: bool = False
    values: Values = field(default_factory=Values)
    weight: Callable[[str], TensorProto | None] = lambda name: None
    frozen: set[str] = field(default_factory=set)
    trusts_sizes: bool = False
    lacks_types: bool = False
    resolver: Resolver = field(init=False)
    witnesses: Witnesses | None = None

    def __post_init__(self) -> None:
        """Handle what contradicts stated types as inference handles them."""
        self.resolver = self.source.resolver_of_run()

    def check_what_was_trusted(self) -> None:
        """Check what the model states if sizes of that were used and others are missing.

        Exporters that omit types also state wrong ones.

        Raises:
            ContradictionError: a stated type contradicts what nodes compute.
        """
        if self.trusts_sizes and self.lacks_types:
            self.source.check()

    def clear_caches(self) -> None:
        """Clear the caches at the end of a run: their graphs refer back to this object.

        This cycle would keep the model and its weights until the garbage collector runs.
        """
        self.source.graphs.clear()
        self.resolver = Resolver()
        self.witnesses = None
