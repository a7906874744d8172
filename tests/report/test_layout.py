"""Pictures: nothing overlaps, edges lead down, and what is drawn is what there is."""

from __future__ import annotations

from itertools import combinations
from xml.etree import ElementTree

import pytest

from reducelower import Target
from reducelower.report import picture, plot
from reducelower.report.layout import Node, _apart, lay_out
from reducelower.rulebook import load_book

from .test_details import pictures

GAP = 50.0


def graph(*reads: tuple[int, ...], width: float = 60.0) -> list[Node]:
    return [Node(at, width + 13 * (at % 3), 30, 0, sources) for at, sources in enumerate(reads)]


GRAPHS = {
    "one": graph(()),
    "chain": graph((), (0,), (1,), (2,)),
    "diamond": graph((), (0,), (0,), (1, 2)),
    "skip": graph((), (0,), (1,), (2,), (3, 0)),
    "wide": graph((), *[(0,)] * 9, tuple(range(1, 10))),
    "crossing": graph((), (), (), (2,), (1,), (0,), (3, 5), (4, 0)),
    "apart": graph((), (), (0,), (1,)),
    "late source": graph((), (0,), (1,), (), (2, 3)),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_nothing_overlaps_and_edges_lead_down(name: str) -> None:
    nodes = GRAPHS[name]
    layout = lay_out(nodes, GAP)
    for left, right in combinations(nodes, 2):
        (x, y), (other_x, other_y) = layout.centers[left.key], layout.centers[right.key]
        apart = abs(x - other_x) >= (left.width + right.width) / 2 or abs(y - other_y) >= 30
        assert apart, (left, right)
    for node in nodes:
        x, y = layout.centers[node.key]
        assert 0 <= x - node.width / 2 <= x + node.width / 2 <= layout.width + 1e-6
        assert 0 <= y - 15 <= y + 15 <= layout.height + 1e-6
        for source in node.reads:
            heights = [layout.centers[source][1], *(at for _, at in layout.routes[source, node.key]), y]
            assert heights == sorted(heights)
            assert len(set(heights)) == len(heights)


def test_edges_that_skip_layers_run_beside_boxes() -> None:
    layout = lay_out(GRAPHS["skip"], GAP)
    for x, y in layout.routes[0, 4]:
        for node in GRAPHS["skip"]:
            center = layout.centers[node.key]
            assert abs(y - center[1]) > 15 or abs(x - center[0]) > node.width / 2


def test_what_reads_nothing_stands_right_above_its_reader() -> None:
    layout = lay_out(GRAPHS["late source"], GAP)
    assert layout.centers[3][1] == layout.centers[2][1]


def test_places_are_the_nearest_without_overlap() -> None:
    assert _apart([0.0, 100.0], [10.0, 10.0]) == [0.0, 100.0]
    assert _apart([0.0, 0.0], [10.0, 10.0]) == [-5.0, 5.0]
    assert _apart([5.0, 0.0, 100.0], [10.0, 10.0, 10.0]) == [-2.5, 7.5, 100.0]


@pytest.mark.parametrize("op_type", load_book("stable").reductions)
def test_every_rule_has_a_picture_with_all_its_operators(op_type: str) -> None:
    text = f"g (float[N, 3] x) => (float[N, 1] y) <int64[1] a = {{1}}> {{ y = {op_type} (x, a) }}"
    for fragment in pictures(text, Target(13, frozenset({op_type})), "stable"):
        svg = ElementTree.fromstring(str(picture.draw(fragment, op_type)))
        boxes = [group for group in svg if group.get("class", "").startswith("box")]
        assert len(boxes) == len(fragment.boxes)
        edges = [group for group in svg if group.get("class") == "edge"]
        assert len(edges) == sum(len(box.inputs) for box in fragment.boxes) + len(fragment.outputs)


def test_the_plot_counts_every_set_of_inputs_once() -> None:
    svg = ElementTree.fromstring(str(plot.draw([0, 0, 1, 3, 70_000, 2**62])))
    bars = [int(text.text) for text in svg if text.tag.endswith("text") and not text.get("class") and text.text]
    assert sum(bars) == 6


def test_a_plot_without_errors_still_shows_the_first_places() -> None:
    assert str(plot.draw([0, 0])).count("<rect") == 3


def test_a_layer_may_be_left_empty() -> None:
    assert _apart([], []) == []
    assert lay_out([], 20).centers == {}
    late = [Node("chain0", 10, 10, 10), *(Node(f"chain{at}", 10, 10, 10, (f"chain{at - 1}",)) for at in (1, 2))]
    both = [Node("late", 10, 10, 10), *late, Node("end", 10, 10, 10, ("chain2", "late"))]
    assert len(lay_out(both, 20).centers) == 5
