"""What differs between two models by structure: names do not count, all else does. Most cases are in `cases.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from reducelower import convert_version, expand
from reducelower.difference import Difference, difference
from reducelower.files import read_model
from reducelower.verification.running.source import Source
from tests.models import model

MODELS = Path(__file__).parents[1] / "data" / "models"
CASES = tomllib.loads((Path(__file__).parent / "cases.toml").read_text("utf-8"))
TEXTS: Mapping[str, str] = CASES.pop("texts")
FIELDS = {"before", "after", "functions", "change", "do", "told", "alike", "places"}


@pytest.mark.parametrize("claim", CASES)
def test_what_is_told_of_a_pair(claim: str) -> None:
    row = CASES[claim]
    assert not row.keys() - FIELDS
    before, after = pair(row)
    found = difference(before, after)
    assert told(found) == row["told"]
    assert found.same == (not row["told"])
    assert found.alike == row.get("alike", found.alike)
    places = [f"{graph}: {node}" for change in found.changes for graph, node in change.nodes]
    assert places == row.get("places", places)


def pair(row: Mapping[str, Any]) -> tuple[ModelProto, ModelProto]:
    first, functions = TEXTS.get(row["before"], row["before"]), row.get("functions", "")
    texts = [row.get("after", first), functions]
    for old, new in row.get("change", ()):
        assert any(old in text for text in texts), old
        texts = [text.replace(old, new) for text in texts]
    changed = model(texts[0], functions=texts[1])
    exec(row.get("do", ""), {"m": changed, "helper": helper})
    return model(first, functions=functions), changed


def told(found: Difference) -> list[str]:
    lines = [f"{fact.kind}: {fact.what}: {fact.before} -> {fact.after}" for fact in found.facts]
    for change in found.changes:
        lines.append(f"{change.kind}: {', '.join(change.before)} -> {', '.join(change.after)}")
        lines += [f"  {detail}" for detail in change.details]
    return [line.replace(":  ->", ": ->").rstrip() for line in lines]


def nodes_of(graph: GraphProto) -> Iterator[NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from nodes_of(attribute.g)


def renamed(given: ModelProto) -> ModelProto:
    """The same model under other names for everything inside, its nodes in another possible order."""
    copy = ModelProto()
    copy.CopyFrom(given)
    kept = {value.name for value in (*copy.graph.input, *copy.graph.output)} | {""}

    def name(old: str) -> str:
        return old if old in kept else f"other {old[::-1]}"

    def rename(graph: GraphProto) -> None:
        for value in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
            value.name = name(value.name)
        for node in graph.node:
            node.name = f"n{len(node.name)}"
            node.input[:] = map(name, node.input)
            node.output[:] = map(name, node.output)
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    rename(attribute.g)

    rename(copy.graph)
    nodes = list(copy.graph.node)
    placed: list[NodeProto] = []
    while nodes:  # whatever can be computed last in the list comes first
        waiting = {output for node in nodes for output in node.output}
        at = max(at for at, node in enumerate(nodes) if not waiting & reads(node))
        placed.append(nodes.pop(at))
    del copy.graph.node[:]
    copy.graph.node.extend(placed)
    return copy


def reads(node: NodeProto) -> set[str]:
    inner = {name for item in node.attribute if item.HasField("g") for each in nodes_of(item.g) for name in each.input}
    return {*node.input, *inner} - set(node.output)


@pytest.mark.parametrize(
    "path", sorted((Path(__file__).parents[1] / "data" / "models").glob("*.onnx")), ids=lambda p: p.stem
)
def test_names_and_order_do_not_count(path: Path) -> None:
    given = onnx.load(path)
    found = difference(given, renamed(given))
    assert found.same, found
    assert found.alike == sum(node.op_type != "Constant" for node in all_nodes(given))


def all_nodes(given: ModelProto) -> Iterator[NodeProto]:
    yield from nodes_of(given.graph)
    for function in given.functions:
        yield from function.node


@pytest.mark.parametrize("book", ["stable", "core"])
def test_an_expansion_differs_where_it_was_made(models: Path, book: str) -> None:
    given = onnx.load(models / "skl_gmm_20.onnx")
    found = difference(given, expand(given, rules=book))
    assert [(change.kind, change.before, len(change.nodes)) for change in found.changes] == [
        ("replaced", ("ReduceSumSquare (axes = [1], keepdims = 1)",), 2),
        ("replaced", ("ReduceLogSumExp (axes = [1], keepdims = 1)",), 1),
    ]
    assert found.alike == len(given.graph.node) - 3


def test_another_opset_version_differs_where_nodes_were_rewritten(models: Path) -> None:
    given = onnx.load(models / "skl_gmm_20.onnx")
    found = difference(given, convert_version(given, 13))
    assert sum(len(change.nodes) for change in found.changes) == 3
    assert all("attribute axes: not given -> [1]" in change.details for change in found.changes)


def test_a_fine_tuned_model_differs_in_its_weights_alone() -> None:
    def trained(seed: int) -> ModelProto:
        generator = np.random.default_rng(seed)
        graph = helper.make_graph(
            [helper.make_node("MatMul", ["x" if at == 0 else f"h{at}", f"w{at}"], [f"h{at + 1}"]) for at in range(4)],
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 16])],
            [helper.make_tensor_value_info("h4", TensorProto.FLOAT, [1, 16])],
            [numpy_helper.from_array(generator.normal(size=(16, 16)).astype(np.float32), f"w{at}") for at in range(4)],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])

    found = difference(trained(0), trained(1))
    assert sum(len(change.nodes) for change in found.changes) == 4
    told = "input B: float[16,16] -> float[16,16], 256 of 256 values differ; the largest error is "
    assert all(change.details[0].startswith(told) for change in found.changes)


@pytest.mark.parametrize("size", [40, 40_000])  # small ones are read into the model
def test_data_in_other_files_counts_by_content(tmp_path: Path, size: int) -> None:
    def stored(folder: str, location: str, top: float) -> Source:
        given = model(f"g (float[{size}] x) => (float[{size}] y) {{ y = Mul (x, w) }}")
        given.graph.initializer.append(numpy_helper.from_array(np.linspace(0, top, size, dtype=np.float32), "w"))
        (tmp_path / folder).mkdir()
        path = tmp_path / folder / "m.onnx"
        onnx.save(given, path, save_as_external_data=True, location=location, size_threshold=0)
        return Source.of(read_model(path).document, path)

    first, same, other = stored("a", "weights.bin", 1), stored("b", "other.bin", 1), stored("c", "weights.bin", 2)
    assert difference(first.proto, same.proto).same
    (change,) = difference(first.proto, other.proto).changes
    shape = f"float[{size}]"
    told = f"{size - 1} of {size} values differ; the largest error is 1 at [{size - 1}]: 1.0 before, 2.0 after"
    assert change.details == (f"input B: {shape} -> {shape}, {told}",)
    assert difference(first.proto, onnx.load(tmp_path / "b" / "m.onnx")).same


def test_nodes_of_one_kind_are_told_apart_by_all_that_follows(models: Path) -> None:
    given = onnx.load(models / "skl_knnc_17.onnx")
    found = difference(given, renamed(convert_version(given, 20)))
    assert len(found.changes) == 1
    assert found.alike == sum(node.op_type != "Constant" for node in all_nodes(given)) - 1


def test_changes_in_branches_come_in_the_order_of_the_nodes_that_hold_them() -> None:
    operators = ["Add", "Sub", "Mul", "Div", "Max", "Min", "Pow"]
    branches = [
        f"r{at} = If (c) <then_branch = t () => (float[2] a{at}) {{ a{at} = {op} (x, w) }}, "
        f"else_branch = e () => (float[2] b{at}) {{ b{at} = Neg (x) }}>"
        for at, op in enumerate(operators)
    ]
    total = f"y = Sum ({', '.join(f'r{at}' for at in range(len(operators)))})"
    text = f"g (float[2] x, bool c) => (float[2] y) <float w = {{1}}> {{ {'  '.join([*branches, total])} }}"
    found = difference(model(text), model(text.replace("{1}", "{3}")))
    assert [change.before[0].partition(" ")[0] for change in found.changes] == operators
