"""The modules of operators are imported for the operators that a model has, so the table of them has to be right."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from reducelower.adapters import ops, rules
from reducelower.adapters.ops import FAMILIES


def _registered() -> dict[str, set[str]]:
    """The operators that each module has registered rules for."""
    found: dict[str, set[str]] = {}
    for op_type, registered in rules._FUNCTIONS.items():
        for rule in registered:
            found.setdefault(rule.write.__module__.rpartition(".")[2], set()).add(op_type)
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
from reducelower.adapters.crossings import crossings
crossings({op_type!r}, 18, 13)
sys.exit("{ops.__name__}.{family}" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
