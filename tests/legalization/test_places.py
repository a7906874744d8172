"""What a plan says of a node is said of the source, whatever stood around the node when it was said."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import ModelProto

import reducelower
from reducelower.files import read_model
from reducelower.options import Settings
from reducelower.pipeline.conversion import legalized_and_raised
from reducelower.plan import Plan
from tests.models import model

_SPELLED = "q = Mul ({of}, {of})  s = ReduceSum (q, a)  {to} = Sqrt (s)"
_BRANCHES = f"""v = Mish (x)  y = If (c) <
    then_branch = t () => (float[2,1] p) <int64[1] a = {{-1}}> {{ m = Mish (x) {_SPELLED.format(of="m", to="p")} }},
    else_branch = e () => (float[2,1] r) <int64[1] a = {{-1}}> {{ {_SPELLED.format(of="x", to="r")} }}>"""


def converted_and_raised(given: ModelProto, opset: int, folder: Path) -> Plan:
    onnx.save(given, folder / "given.onnx")
    settings = Settings(target=reducelower.Target(opset), raised=())
    return legalized_and_raised(read_model(folder / "given.onnx"), settings)[1]


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        (
            f"v = Mish (x)  {_SPELLED.format(of='x', to='y')}",
            [("graph", "Mish#0", 0, ()), ("graph", "Sqrt#3", 3, (1, 2, 3))],
        ),
        (
            _BRANCHES,
            [
                ("graph", "Mish#0", 0, ()),
                ("graph/If#1.then_branch", "Mish#0", 0, ()),
                ("graph/If#1.then_branch", "Sqrt#3", 3, (1, 2, 3)),
                ("graph/If#1.else_branch", "Sqrt#2", 2, (0, 1, 2)),
            ],
        ),
    ],
    ids=["main graph", "branches"],
)
def test_a_node_without_a_name_is_called_by_its_place_in_the_source(
    nodes: str, expected: list[object], tmp_path: Path
) -> None:
    """The opset version lacks Mish, so what is raised stands elsewhere by then."""
    given = model(f"(float[2,3] x, bool c) => (float[2,3] v, float[2,1] y) <int64[1] a = {{-1}}> {{ {nodes} }}", 18)
    plan = converted_and_raised(given, 17, tmp_path)
    assert [(site.graph, site.node, site.index, site.raised_from) for site in plan.sites] == expected


def test_sites_in_branches_are_found_where_a_sequence_before_them_was_taken_apart() -> None:
    given = model(
        """(float[4,3,2] x, bool c, int64 n) => (float[3,2,1] z) {
        s = SplitToSequence <keepdims = 0> (x)  y = SequenceAt (s, n)  z = If (c) <
            then_branch = t () => (float[3,2,1] p) { p = Unsqueeze <axes = [-1]> (y) },
            else_branch = e () => (float[3,2,1] q) { r = Neg (y)  q = Unsqueeze <axes = [-1]> (r) }> }""",
        11,
    )
    made = reducelower.legalize(given, reducelower.Target(9))
    assert [(site.graph, site.node) for site in made.plan.sites] == [
        ("graph/If#2.then_branch", "Unsqueeze#0"),
        ("graph/If#2.else_branch", "Unsqueeze#1"),
    ]
    assert reducelower.verify(given, made.model, plan=made.plan).equivalent


def test_what_is_refused_after_a_sequence_was_taken_apart_is_called_by_its_place_in_the_source() -> None:
    given = model(
        """(float[4,3,2] x, int64 n) => (float[3,2] y, float[4,3,2] z) {
        s = SplitToSequence <keepdims = 0> (x)  y = SequenceAt (s, n)
        w = Neg (x)  t = SequenceConstruct (x, w)  z = SequenceAt (t, n) }""",
        11,
    )
    with pytest.raises(reducelower.ConversionError) as caught:
        reducelower.legalize(given, reducelower.Target(9))
    assert [refusal.node for refusal in caught.value.refusals] == ["SequenceConstruct#3", "SequenceAt#4"]
