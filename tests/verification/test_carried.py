"""What is the same node for two versions of its operator: no region where the page says the same, else one for all."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from reducelower.verification.operators import column
from reducelower.verification.regions.numbering import meaning
from tests.models import model

from .planned import planned


@pytest.mark.parametrize(
    ("op_type", "older", "newer"),
    [("Conv", 11, 22), ("Reshape", 14, 21), ("Gemm", 11, 13), ("Loop", 13, 16), ("Constant", 12, 21), ("Max", 8, 13)],
)
def test_versions_that_differ_in_types_and_layout_mean_the_same(op_type: str, older: int, newer: int) -> None:
    assert meaning(op_type, newer) == meaning(op_type, older)


@pytest.mark.parametrize(
    ("op_type", "older", "newer"),
    [
        ("Softmax", 12, 13),
        ("BatchNormalization", 13, 14),
        ("Cast", 12, 13),
        ("Flatten", 10, 11),
        ("Resize", 10, 11),
        ("AveragePool", 21, 22),
        ("Upsample", 8, 9),
        ("Cast", 23, 24),
        ("GroupNormalization", 18, 21),
    ],
)
def test_versions_of_which_the_page_says_something_else_do_not(op_type: str, older: int, newer: int) -> None:
    assert meaning(op_type, newer) != meaning(op_type, older)


def test_an_attribute_that_came_with_a_version_makes_it_another() -> None:
    assert meaning("Reshape", 14) == meaning("Reshape", 13)
    assert meaning("Reshape", 14, "", ("allowzero",)) != meaning("Reshape", 13)
    assert meaning("ScatterND", 18, "", ("reduction",)) != meaning("ScatterND", 16, "", ("reduction",))


WORDED_OTHERWISE = {
    (op_type, int(version)): text
    for op_type, texts in tomllib.loads(Path(__file__).with_name("worded_otherwise.toml").read_text("utf-8")).items()
    for version, text in texts.items()
}


@pytest.mark.parametrize("key", list(WORDED_OTHERWISE), ids=str)
def test_versions_that_are_worded_otherwise_compute_the_same(key: tuple[str, int]) -> None:
    """By running both, as where nobody had read their pages; what no runtime takes cannot be said."""
    op_type, version = key
    found = planned(*(model(f"g {WORDED_OTHERWISE[key]}", opset) for opset in (version - 1, version))).finding()
    assert found.op_type == op_type
    assert found.status != "different"
    assert found.status != "not run" or version > 22


def test_every_version_that_is_taken_for_the_same_was_run() -> None:
    inner = {("Loop", 13), ("SpaceToDepth", 28)}  # whose bodies are compared; which no runtime knows yet
    same = {(op_type, version) for op_type, versions in column("same").items() for version in versions}
    assert same == set(WORDED_OTHERWISE) | inner


def test_an_operator_without_a_schema_means_something_else_at_every_version() -> None:
    assert meaning("Solve", 1, "com.example") != meaning("Solve", 2, "com.example")
