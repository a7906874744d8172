"""The settings of a run: the target, and the settings that library, command line and batches share."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import TYPE_CHECKING, Literal, TypeAlias, TypedDict

from reducelower.text import did_you_mean

if TYPE_CHECKING:
    from reducelower.numerics.tolerance import Tolerance
    from reducelower.rulebook import RuleBook
    from reducelower.runtimes import Runtime

__all__ = ["Book", "IrVersion", "Options", "Settings", "Target", "check_names"]

Book: TypeAlias = "str | os.PathLike[str] | RuleBook"
"""A rule book: ``spec``, ``stable``, ``core``, a folder, or a book made in Python."""

IrVersion: TypeAlias = 'Literal["auto", "keep"] | int'


@dataclass(frozen=True)
class Target:
    """What a model has to fit: an opset version, a runtime, operators and types to avoid.

    Attributes:
        opset: opset version of the default domain; None keeps the model's own.
        without: operator types of the default domain that must not remain, such as ``{"ReduceLogSumExp"}``.
        without_types: names of element types (``"double"``, ``"bfloat16"``, as ONNX writes them) that added nodes may
            not use.
        runtime: the runtime that the model is for, by its name or from a target file. Nodes that the runtime computes
            wrongly or refuses are replaced by equivalent ones. If `opset` is None, the model keeps its own opset
            version or gets the one that the runtime prefers, whichever needs fewer rewrites.
        assume_nonempty: assume that no dimension is zero when the model runs. Then no nodes are added for empty data.
            The same is assumed for a runtime that refuses an added If.
        without_domains: domains of vendors of which nothing may remain, such as ``{"com.microsoft"}``; the rule book
            says what their operators become.

    Raises:
        TypeError: a field has the wrong type, such as a string for `without`.
        ValueError: a domain is one of ONNX's own.
        TargetError: there is no runtime with that name.
    """

    opset: int | None = None
    without: frozenset[str] = frozenset()
    without_types: frozenset[str] = frozenset()
    runtime: Runtime | None = None
    assume_nonempty: bool = False
    without_domains: frozenset[str] = frozenset()

    if TYPE_CHECKING:

        def __init__(
            self,
            opset: int | None = None,
            without: Iterable[str] = (),
            without_types: Iterable[str] = (),
            runtime: Runtime | str | None = None,
            assume_nonempty: bool = False,
            without_domains: Iterable[str] = (),
        ) -> None:
            """Accept any collection of names, and a runtime by its name."""

    def __post_init__(self) -> None:
        """Check arguments that a caller may confuse. A collection of names becomes a set, and a name the runtime."""
        from reducelower.arguments import name_set, value_text

        if isinstance(self.runtime, str):
            from reducelower.runtimes import load_runtime

            object.__setattr__(self, "runtime", load_runtime(self.runtime))
        if self.opset is not None and not isinstance(self.opset, Integral):
            raise TypeError(f"opset must be an int such as 13, not {value_text(self.opset)}")
        for name in ("without", "without_types", "without_domains"):
            object.__setattr__(self, name, name_set(name, getattr(self, name)))
        if own := [name for name in self.without_domains if name in ("", "ai.onnx") or name.startswith("ai.onnx.")]:
            raise ValueError(f"without_domains are those of vendors; {own[0]!r} is ONNX's own")


class Options(TypedDict, total=False):
    """The keyword arguments that every converting function accepts besides its own arguments.

    Attributes:
        ir_version: ``auto`` changes the IR version if the opset version changes: up to what the opset version needs, or
            down to what the contents need. ``keep`` leaves it as it is. A number sets it. `expand` and
            `raise_reductions` keep it by default.
        freeze_defaults: treat initializers that are also graph inputs as constants, though a caller may override them.
        element_types: element types of values, by name, that the model does not state, such as ``{"y": "float32"}``.
        ranks: ranks of values, by name, that the model does not state.
        base_dir: folder that external data locations are relative to, or the model's file. If that file is a link, the
            data may be beside the file that the link leads to. Without it, external constants are not read. A model
            that is given by its path, or as a part of a batch, does not need it.
        set_sizes: numbers for named sizes of the model, such as ``{"batch": 1}``. What the model computes from these
            sizes becomes constant.
        validate: check every distinct rewrite with onnx's checker and shape inference, and refuse it if it is invalid
            (the default). This takes about a tenth of a millisecond for each.
    """

    ir_version: IrVersion
    freeze_defaults: bool
    element_types: Mapping[str, str] | None
    ranks: Mapping[str, int] | None
    base_dir: str | os.PathLike[str] | None
    set_sizes: Mapping[str, int]
    validate: bool


def check_names(options: Iterable[str]) -> None:
    """Raise a TypeError for the name of an option that does not exist."""
    for name in options:
        if name not in Options.__annotations__:
            raise TypeError(f"unexpected keyword argument {name!r}{did_you_mean(name, Options.__annotations__)}")


@dataclass(frozen=True)
class Settings:
    """All settings of a run. The engine reads the first group, verification and files read the others.

    Those that are not described here are described at `Options`.

    Attributes:
        target: what is legal where the models are going.
        rules: rule book that bodies come from.
        memo: work out similar nodes once. Without it, every node is worked out by itself, and the bytes are the same.

        raised: operators to raise to, after the models were made legal for the target. An empty list means all
            operators; None raises nothing.
        verify: run both models and compare them.
        dims, inputs: sizes of symbolic dimensions and files with input values, for verification.
        test_data: folder in ONNX's test-data layout from which verification takes inputs and outputs; may be empty.
        runtimes: where the converted model is run.
        provider: execution provider of onnxruntime, such as ``cuda``; by default the CPU.
        tolerances: tolerances by ONNX element type, used instead of the defaults.
        budget: seconds for running the regions of two models and both whole models, see `reducelower.verify`.
        memory: GB of memory that such a run may take.
        cache: keep a record on disk of what held, as the command line does, so that later runs need not run it again.
        strict: a model that cannot be run is a failure.

        repair: repair faults that make a model invalid before it is converted, see `reducelower.repair`.
        overwrite: existing outputs may be replaced.
        in_place: outputs replace their inputs.
        external_data: how external data gets to another folder.
        details: outcomes have what a report shows about a model besides the plan.
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

    repair: bool = False
    overwrite: bool = False
    in_place: bool = False
    external_data: str = "copy"
    details: bool = False
