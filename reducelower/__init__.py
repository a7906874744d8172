"""reducelower: convert ONNX models to another opset version or for a runtime.

`convert_version` moves a model to another opset version, `expand` replaces composite Reduce operators by their
bodies, `raise_reductions` is the way back, `check` reports what would change, `verify` compares two models by running
them, `repair` fixes what runtimes accept and checkers reject. `reducelower.ir` does the same for users of onnx_ir and
onnxscript. Nothing heavy is imported before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from reducelower.api import check, convert_version, expand, legalize
    from reducelower.errors import ConversionError, Refusal, RuleError, SettingError, TargetError, UnreadableModelError
    from reducelower.options import Options, Target
    from reducelower.plan import Plan, Site
    from reducelower.recompose import raise_reductions
    from reducelower.repairs import Repaired, repair
    from reducelower.runtimes import Runtime, load_runtime
    from reducelower.verification import Verification, verify

__all__ = [
    "ConversionError",
    "Options",
    "Plan",
    "Refusal",
    "Repaired",
    "RuleError",
    "Runtime",
    "SettingError",
    "Site",
    "Target",
    "TargetError",
    "UnreadableModelError",
    "Verification",
    "check",
    "convert_version",
    "expand",
    "legalize",
    "load_runtime",
    "raise_reductions",
    "repair",
    "verify",
]

_HOME = {
    **dict.fromkeys(("check", "convert_version", "expand", "legalize"), "api"),
    **dict.fromkeys(("ConversionError", "Refusal", "RuleError", "SettingError", "TargetError"), "errors"),
    "UnreadableModelError": "errors",
    **dict.fromkeys(("Plan", "Site"), "plan"),
    **dict.fromkeys(("Repaired", "repair"), "repairs"),
    **dict.fromkeys(("Runtime", "load_runtime"), "runtimes"),
    **dict.fromkeys(("Verification", "verify"), "verification"),
    **dict.fromkeys(("Options", "Target"), "options"),
    "raise_reductions": "recompose",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    from importlib import import_module

    if name == "ir":
        return import_module("reducelower.ir")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"reducelower.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, without imports and helpers."""
    return sorted({*__all__, "__doc__", "__version__", "ir"})
