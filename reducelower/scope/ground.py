"""What all scopes of one run stand on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from onnx import TensorProto, TypeProto

from reducelower.model.census import Stated
from reducelower.model.inference import Inference
from reducelower.model.names import Names
from reducelower.scope.fold import Folding
from reducelower.scope.types import KnownType, known_type
from reducelower.scope.values import Values

__all__ = ["Ground"]


class Ground:
    """What all scopes of one run stand on: names, overrides, inference and how constants are written."""

    def __init__(
        self,
        names: Names,
        source: Inference,
        *,
        opset: int,
        element_types: Mapping[str, int],
        ranks: Mapping[str, int],
        base_dir: Path | None,
        freeze_defaults: bool,
        overridable: bool,
        initializers_stand_alone: bool,
        is_last_attempt: bool = False,
        values: Values | None = None,
        stated: Stated | None = None,
        weight: Callable[[str], TensorProto | None] = lambda name: None,
    ) -> None:
        """Bring together what is the same everywhere in a model.

        Args:
            opset: opset version of the target.
            names: gives out fresh names.
            source: the model as it was, and the types that inference finds in it.
            element_types: element types that the user declared, by value name.
            ranks: ranks that the user declared, by value name.
            base_dir: folder that external data locations are relative to.
            freeze_defaults: whether an initializer that is also a graph input counts as constant.
            overridable: whether such an initializer is a default the caller may override (IR version 4 and later).
            initializers_stand_alone: whether an initializer need not be a graph input (IR version 4 and later).
            is_last_attempt: whether functions have been copied for their calls where that could help, so that what
                they are handed has to be taken as it comes.
            values: the numbers of values of constants; None where those of other runs are not to be the same.
            stated: what the main graph states, where that can be told in short.
            weight: gives the initializers of the main graph by name, where the model has none of their values.
        """
        self.names = names
        self.source = source
        self.element_types = dict(element_types)
        self.ranks = ranks
        self.base_dir = base_dir
        self.freeze_defaults = freeze_defaults
        self.overridable = overridable
        self.initializers_stand_alone = initializers_stand_alone
        self.is_last_attempt = is_last_attempt
        self.opset = opset
        self.frozen: set[str] = set()
        self.folding = Folding()
        self.told: dict[tuple[Any, str], int] = {}
        self.values = Values() if values is None else values
        self.stated = stated
        self.weight = weight
        self._known_types: dict[bytes, KnownType] = {}

    def let_go(self) -> None:
        """Forget what was found of values, when no more is asked: the graphs they are in hold on to this.

        Otherwise the model, weights and all, would wait for the garbage collector.
        """
        self.folding = Folding()
        self.told = {}

    def known_type(self, found: TypeProto) -> KnownType:
        """What a type says; there is one of each, since thousands of values have the same."""
        key = found.SerializeToString()
        if key not in self._known_types:
            self._known_types[key] = known_type(found)
        return self._known_types[key]
