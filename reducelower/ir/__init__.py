"""For users of onnx_ir and onnxscript: the conversions as passes, the rule books as rewrite rules.

`ConvertVersionPass`, `ExpandPass` and `RaisePass` are `onnx_ir.passes` that compose with others in
`onnx_ir.passes.Sequential`; `rewrite_rules` gives a rule book to `onnxscript.rewriter.rewrite`. Importing this package
imports onnx_ir; onnxscript is imported when rewrite rules are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reducelower.ir.passes import ConvertVersionPass, ExpandPass, RaisePass

if TYPE_CHECKING:
    from reducelower.ir.rewriting import rewrite_rules

__all__ = ["ConvertVersionPass", "ExpandPass", "RaisePass", "rewrite_rules"]


def __getattr__(name: str) -> Any:
    """Import onnxscript when rewrite rules are first asked for."""
    if name != "rewrite_rules":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from reducelower.ir.rewriting import rewrite_rules

    return rewrite_rules


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
