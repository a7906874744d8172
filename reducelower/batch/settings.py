"""What a conversion is told: plain facts that travel to worker processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from reducelower.target import Target

if TYPE_CHECKING:
    from reducelower.verification import Tolerance

__all__ = ["Settings", "Task"]


@dataclass(frozen=True)
class Settings:
    """Everything that holds for all models of one run.

    Attributes:
        target: what is legal where the models are going.
        rules: rule book that bodies come from.
        ir_version: ``auto``, ``keep`` or a number.
        freeze_defaults: take initializers that are also inputs for constants.
        element_types, ranks: facts about values that the models do not state, by name.
        raised: operators to raise to, all where none is named; None makes the models legal instead.
        verify: run both models and compare.
        dims, inputs: sizes of symbolic dimensions and files with input values, for verification.
        test_data: folder in ONNX's test-data layout that verification takes inputs and outputs from; may be empty.
        runtimes: where the converted model is run.
        tolerances: by ONNX element type, in place of the defaults.
        budget: seconds that running one model may take.
        strict: a model that cannot be run is a failure.
        details: outcomes carry what a report shows of a model besides the plan.
        overwrite: existing outputs may be replaced.
        in_place: outputs replace their inputs.
        external_data: how external data comes to another folder.
    """

    target: Target
    rules: str = "spec"
    ir_version: Literal["auto", "keep"] | int = "auto"
    freeze_defaults: bool = False
    element_types: Mapping[str, str] = field(default_factory=dict)
    ranks: Mapping[str, int] = field(default_factory=dict)
    raised: Sequence[str] | None = None
    verify: bool = True
    dims: Mapping[str, int] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    test_data: str = ""
    runtimes: Sequence[str] = ("onnxruntime",)
    tolerances: Mapping[str, Tolerance] = field(default_factory=dict)
    budget: float = 60.0
    strict: bool = False
    overwrite: bool = False
    in_place: bool = False
    external_data: str = "copy"
    details: bool = False

    def for_engine(self) -> Mapping[str, Any]:
        """The settings that `reducelower.api.legalize` and `check` take, by the names of their arguments."""
        return {
            "target": self.target,
            "rules": self.rules,
            "ir_version": self.ir_version,
            "freeze_defaults": self.freeze_defaults,
            "element_types": self.element_types,
            "ranks": self.ranks,
        }


@dataclass(frozen=True)
class Task:
    """One model and where its output goes.

    Attributes:
        source: the model, a path or a URL.
        output: its output, a path or a URL.
        make_folder: a missing folder of the output is made.
        record: file that says what an output was made from, for runs that resume; empty when none is kept.
    """

    source: str
    output: str = ""
    make_folder: bool = False
    record: str = ""
