"""reducelower: make an ONNX model legal for its runtime.

`convert_version` moves a model to another opset version, `expand` replaces composite Reduce operators by their
bodies, `raise_reductions` is the way back, `check` tells what would change, `verify` compares two models by running
them, `repair` fixes what runtimes accept and checkers reject. `reducelower.ir` does the same for users of onnx_ir and
onnxscript. Nothing heavy is imported before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from reducelower.api import check, convert_bytes, convert_version, expand, expand_bytes, legalize
    from reducelower.errors import ConversionError, Refusal
    from reducelower.legalization.repair import Repaired, repair
    from reducelower.options import Target
    from reducelower.plan import Plan, Site
    from reducelower.recompose import raise_reductions
    from reducelower.runtimes import Runtime, load_runtime
    from reducelower.verification import Verification, verify

__all__ = [
    "ConversionError",
    "Plan",
    "Refusal",
    "Repaired",
    "Runtime",
    "Site",
    "Target",
    "Verification",
    "check",
    "convert_bytes",
    "convert_version",
    "expand",
    "expand_bytes",
    "legalize",
    "load_runtime",
    "raise_reductions",
    "repair",
    "verify",
]

_HOME = {
    "ConversionError": "reducelower.errors",
    "Plan": "reducelower.plan",
    "Refusal": "reducelower.errors",
    "Repaired": "reducelower.legalization.repair",
    "Runtime": "reducelower.runtimes",
    "Site": "reducelower.plan",
    "Target": "reducelower.options",
    "Verification": "reducelower.verification",
    "check": "reducelower.api",
    "convert_bytes": "reducelower.api",
    "convert_version": "reducelower.api",
    "expand": "reducelower.api",
    "expand_bytes": "reducelower.api",
    "legalize": "reducelower.api",
    "load_runtime": "reducelower.runtimes",
    "raise_reductions": "reducelower.recompose",
    "repair": "reducelower.legalization.repair",
    "verify": "reducelower.verification",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    from importlib import import_module

    if name == "ir":
        return import_module("reducelower.ir")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, and nothing that stands here for another reason."""
    return sorted({*__all__, "__doc__", "__version__", "ir"})
