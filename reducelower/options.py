"""The settings of a run: the target, and what library, command line and batches share."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

from reducelower.model.text import did_you_mean

if TYPE_CHECKING:
    from reducelower.numerics.tolerance import Tolerance
    from reducelower.rulebook import RuleBook
    from reducelower.runtimes import Runtime

__all__ = ["NAMED", "Book", "IrVersion", "Options", "Settings", "Target", "check_names"]

Book: TypeAlias = "str | os.PathLike[str] | RuleBook"
"""A rule book: ``spec``, ``stable``, ``core``, a folder, or one made in Python."""

IrVersion: TypeAlias = 'Literal["auto", "keep"] | int'

NAMED = frozenset({"dims", "inputs", "set_sizes", "element_types", "ranks"})
"""The settings that are about values and sizes of a model, by their names."""


@dataclass(frozen=True)
class Target:
    """What a model has to fit: an opset version, a runtime, operators and types to do without.

    Attributes:
        opset: opset version of the default domain; None keeps the model's own.
        without: operator types of the default domain that must not remain, such as ``{"ReduceLogSumExp"}``.
        without_types: names of element types (``"double"``, ``"bfloat16"``, as ONNX writes them) that nothing the
            tool adds may use.
        runtime: the runtime that the model is for, by its name or from a target file; nodes that come out wrong there
            or are refused are replaced by equivalent ones. Without an opset the model keeps its own or comes to the
            runtime's preferred one, whichever takes fewer rewrites.
        assume_nonempty: no dimension is zero when the model runs, so that nothing is written for emptiness. A runtime
            that refuses an If that the tool adds makes the same assumption.
        domains: versions of other domains, such as ``{"com.vendor": 1}``, for which the rule book has rules; 0 where
            nothing of the domain may remain.

    Raises:
        TypeError: a field is not of its type, such as a string for `without`.
        TargetError: there is no runtime of that name.
    """

    opset: int | None = None
    without: frozenset[str] = frozenset()
    without_types: frozenset[str] = frozenset()
    runtime: Runtime | None = None
    assume_nonempty: bool = False
    domains: frozenset[tuple[str, int]] = frozenset()

    if TYPE_CHECKING:

        def __init__(
            self,
            opset: int | None = None,
            without: Iterable[str] = (),
            without_types: Iterable[str] = (),
            runtime: Runtime | str | None = None,
            assume_nonempty: bool = False,
            domains: Mapping[str, int] | Iterable[tuple[str, int]] = (),
        ) -> None:
            """Take any collection of names, a runtime by its name, and a mapping for the versions of domains."""

    def __post_init__(self) -> None:
        """Check what a caller may confuse; a collection of names becomes a set, a name the runtime."""
        from reducelower.arguments import domain_versions, integer, name_set

        if isinstance(self.runtime, str):
            from reducelower.runtimes import load_runtime

            object.__setattr__(self, "runtime", load_runtime(self.runtime))
        if self.opset is not None:
            integer("opset", self.opset, 13)
        object.__setattr__(self, "without", name_set("without", self.without))
        object.__setattr__(self, "without_types", name_set("without_types", self.without_types))
        object.__setattr__(self, "domains", domain_versions(self.domains))


class Options(TypedDict, total=False):
    """What every function that converts takes by keyword, besides its own arguments.

    Attributes:
        ir_version: ``auto`` follows the opset version if it changes: up to what that needs, and down to what the
            contents need; ``keep`` leaves it; a number sets it. `expand` and `raise_reductions` keep it by default.
        freeze_defaults: treat initializers that are also graph inputs as constants, though a caller may override them.
        element_types: element types of values that the model does not state, by name, such as ``{"y": "float32"}``.
        ranks: ranks of values that the model does not state, by name.
        base_dir: folder that external data locations are relative to, or the model's file; without it, external
            constants are not read. A model that is given by its path needs none.
        set_sizes: sizes that replace their names in the model, such as ``{"batch": 1}``; what the model computed with
            them becomes constant.
        validate: check every distinct rewrite with onnx's checker and shape inference, and refuse what is not valid
            (the default); it takes about a tenth of a millisecond for each.
    """

    ir_version: IrVersion
    freeze_defaults: bool
    element_types: Mapping[str, str] | None
    ranks: Mapping[str, int] | None
    base_dir: str | os.PathLike[str] | None
    set_sizes: Mapping[str, int]
    validate: bool


def check_names(options: Iterable[str]) -> None:
    """Raise a TypeError for the name of an option that there is not."""
    for name in options:
        if name not in Options.__annotations__:
            raise TypeError(f"unexpected keyword argument {name!r}{did_you_mean(name, Options.__annotations__)}")


@dataclass(frozen=True)
class Settings:
    """All settings of a run; the engine reads the first group, verification and files the others.

    Attributes:
        target: what is legal where the models are going.
        rules: rule book that bodies come from.
        ir_version: ``auto`` is the IR version that the target's opset version came with, or a newer one where a reader
            would not understand the model otherwise; ``keep`` leaves it; a number sets it.
        freeze_defaults: take initializers that are also inputs for constants.
        element_types, ranks: facts about values that the models do not state, by name.
        base_dir: folder that locations of external data are relative to, or the model's file, whose own link may lead
            to the folder with the data; None leaves external constants unread. Batches take the file of each model.
        set_sizes: sizes that take the place of their names in the model, before anything else is done.
        validate: look at every distinct rewrite with onnx's checker and shape inference, and refuse what is not valid.
        memo: work out like nodes once; without it every node is worked out by itself, to the same bytes.

        raised: operators to raise to, all where none is named, after the models were made legal for the target; None
            raises nothing.
        verify: run both models and compare.
        dims, inputs: sizes of symbolic dimensions and files with input values, for verification.
        test_data: folder in ONNX's test-data layout that verification takes inputs and outputs from; may be empty.
        runtimes: where the converted model is run.
        provider: execution provider of onnxruntime, such as ``cuda``; the CPU where none is named.
        tolerances: by ONNX element type, in place of the defaults.
        budget: seconds for running the regions of two models and both whole, see `reducelower.verify`.
        memory: GB that a run may take there.
        cache: keep on disk what held, as the command line does, so that later runs need not run it again.
        strict: a model that cannot be run is a failure.

        inline: copy local functions in place of their calls before the model is converted.
        repair: mend what keeps a model from being valid, see `reducelower.repair`, before it is converted.
        overwrite: existing outputs may be replaced.
        in_place: outputs replace their inputs.
        external_data: how external data comes to another folder.
        details: outcomes carry what a report shows of a model besides the plan.
        optional: those of `dims`, `inputs`, `set_sizes`, `element_types` and `ranks` of which a model takes what it has
            names for, as from a configuration file; of the others a name that a model lacks is an error.
    """

    target: Target = Target()
    rules: Book = "stable"
    ir_version: IrVersion = "auto"
    freeze_defaults: bool = False
    element_types: Mapping[str, str] | None = None
    ranks: Mapping[str, int] | None = None
    base_dir: str | os.PathLike[str] | None = None
    memo: bool = True
    validate: bool = True
    set_sizes: Mapping[str, int] = field(default_factory=dict)

    raised: Sequence[str] | None = None
    verify: bool = True
    dims: Mapping[str, int] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    test_data: str = ""
    runtimes: Sequence[str] = ("onnxruntime",)
    provider: str = ""
    tolerances: Mapping[str, Tolerance] = field(default_factory=dict)
    budget: float = 60.0
    memory: float = 1.0
    cache: bool = False
    strict: bool = False

    inline: bool = False
    repair: bool = False
    overwrite: bool = False
    in_place: bool = False
    external_data: str = "copy"
    details: bool = False
    optional: frozenset[str] = frozenset()

    def for_engine(self) -> Mapping[str, Any]:
        """The settings that `reducelower.legalize` and `check` take, by the names of their arguments."""
        return {
            "target": self.target,
            "rules": self.rules,
            "ir_version": self.ir_version,
            "freeze_defaults": self.freeze_defaults,
            "element_types": self.element_types,
            "ranks": self.ranks,
            "set_sizes": self.set_sizes,
        }
