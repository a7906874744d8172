"""The table of what verification knows of operators."""

from __future__ import annotations

from onnx import defs

from reducelower.verification.operators import column, described, of_kind

RUNTIME = "com.microsoft."  # onnx has no schemas of its operators
COLUMNS = ("kinds", "where", "roles", "divisors", "same", "reference")


def test_every_row_is_of_an_operator_that_there_is() -> None:
    known = {item.name for item in defs.get_all_schemas_with_history()}
    assert {name for each in COLUMNS for name in column(each) if not name.startswith(RUNTIME)} <= known


def test_inputs_that_a_row_speaks_of_are_those_of_the_operator() -> None:
    most = {item.name: 0 for item in defs.get_all_schemas_with_history()}
    for item in defs.get_all_schemas_with_history():
        most[item.name] = max(most[item.name], item.max_input)
    for each in ("where", "divisors", "roles"):
        rows = {name: places for name, places in column(each).items() if not name.startswith(RUNTIME)}
        assert all(at < most[name] for name, places in rows.items() for at in places)


def test_versions_that_a_row_speaks_of_are_those_of_the_operator() -> None:
    versions = {(item.name, item.since_version) for item in defs.get_all_schemas_with_history()}
    newest = defs.onnx_opset_version()
    said = {(name, version) for name, each in column("same").items() for version in each if version <= newest}
    assert said <= versions


def test_operators_are_found_by_what_they_do() -> None:
    assert "Add" in of_kind("commutative")
    assert "Reshape" in of_kind("converting", "random")
    assert "Dropout" in of_kind("converting", "random")
    assert "MatMul" not in of_kind("commutative")


def test_every_property_of_a_row_is_described() -> None:
    assert frozenset().union(*column("kinds").values()) == described()
