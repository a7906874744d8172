"""The state that all scopes of one run share."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

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
        names: makes fresh names.
        source: the types of the model before any rewrite.
        opset: opset version of the target.
        data_folder: the folder of external data; None if unknown.
        freeze_defaults: whether an initializer that is also a graph input counts as constant.
        overridable: whether callers may override such an initializer (IR version 4 and later).
        initializers_stand_alone: whether an initializer need not be a graph input (IR version 4 and later).
        assumes_nonempty: whether no dimension is zero when the model runs.
        values: numbers of constant values, which other runs may share.
        frozen: names of initializers whose defaults were used as constants.
        trusts_sizes: whether stated sizes were used where nodes leave them open.
        lacks_types: whether a question was about a value whose type the model does not state.
        witnesses: which sizes are not zero; None until a rule asks.
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
    frozen: set[str] = field(default_factory=set)
    trusts_sizes: bool = False
    lacks_types: bool = False
    witnesses: Witnesses | None = None

    @cached_property
    def resolver(self) -> Resolver:
        """Answers questions about values, with symbolic sizes."""
        return self.source.resolver_of_run()

    def check_what_was_trusted(self) -> None:
        """Check the stated types if a run used stated sizes and lacked other types.

        Exporters that omit types also state wrong ones.

        Raises:
            ContradictionError: a stated type contradicts what nodes compute.
        """
        if self.trusts_sizes and self.lacks_types:
            self.source.check()

    def clear_caches(self) -> None:
        """Clear the caches at the end of a run.

        Their graphs refer back to this object. The cycle would keep the model and its weights until garbage collection.
        """
        self.source.graphs.clear()
        self.__dict__.pop("resolver", None)
        self.witnesses = None
