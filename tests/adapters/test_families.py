"""The modules of operators are imported for the operators that a model has, so the table of them has to be right."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from reducelower.adapters import decompose, ops, registry
from reducelower.adapters.ops import FAMILIES


def _registered() -> dict[str, set[str]]:
    """The operators that each module has registered rewrites for."""
    found: dict[str, set[str]] = {}
    for op_type, rewrites in (
        *((op_type, (rewrite,)) for (op_type, _), rewrite in (*registry._LOWERS.items(), *registry._RAISES.items())),
        *((op_type, [known.expression for known in ways]) for op_type, ways in decompose._EXPRESSIONS.items()),
    ):
        for rewrite in rewrites:
            if rewrite.__module__.startswith(f"{ops.__name__}."):
                found.setdefault(rewrite.__module__.rpartition(".")[2], set()).add(op_type)
    return found


def test_the_table_names_what_each_module_registers() -> None:
    modules = {path.stem for path in Path(ops.__file__).parent.glob("*.py")} - {"__init__"}
    for name in modules:
        import_module(f"{ops.__name__}.{name}")
    assert {name: set(op_types.split()) for name, op_types in FAMILIES.items()} == _registered()


@pytest.mark.parametrize(("op_type", "family"), [("ReduceMax", "resize"), ("Resize", "normalization")])
def test_other_families_are_not_imported(op_type: str, family: str) -> None:
    code = f"""
import sys
from reducelower.adapters.registry import crossings
crossings({op_type!r}, 18, 13)
sys.exit("{ops.__name__}.{family}" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
