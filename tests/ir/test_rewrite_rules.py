"""A rule book given to onnxscript's rewriter does what `expand` does."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, parser

import reducelower
from reducelower.rulebook import RuleBook, RuleError
from tests.legalization.models import FORMS, Case, sample
from tests.legalization.running import run
from tests.pairwise import pairwise
from tests.recompose.listed import operators_by_graph

rewriter = pytest.importorskip("onnxscript.rewriter")

from reducelower.ir import rewrite_rules  # noqa: E402 (needs onnxscript)

OPERATORS = ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean", "ReduceMin", "ReduceSumSquare")
ROOT = Path(__file__).parents[2]
MODELS = [*sorted((ROOT / "tests/data/models").glob("*.onnx")), *sorted((ROOT / "examples/models").glob("*.onnx"))]


def rewritten(model: ModelProto, book: str | RuleBook) -> ModelProto:
    result = rewriter.rewrite(model, pattern_rewrite_rules=rewrite_rules(book))
    onnx.checker.check_model(result, full_check=True)
    return result


def computing(model: ModelProto) -> list[list[str]]:
    return [[name for name in graph if name != "Constant"] for graph in operators_by_graph(model)]


BOOKS = ("spec", "stable", "core")


@pytest.mark.parametrize(
    ("path", "book"), list(zip(MODELS, cycle(BOOKS), strict=False)), ids=lambda each: getattr(each, "stem", each)
)
def test_a_model_of_an_exporter_comes_out_as_expand_gives_it(path: Path, book: str) -> None:
    model = onnx.load(path)
    expanded = reducelower.expand(model, rules=book)
    if operators_by_graph(expanded) != operators_by_graph(model):
        result = rewritten(model, book)
        assert computing(result) == computing(expanded)
        found = reducelower.verify(model, result)
        # The specification's own bodies overflow where the operators do not: that is what was asked for.
        lost = {"loses range"} if book == "spec" else set()
        assert {site.status for site in found.sites if not site.ok} <= lost
        assert {output.verdict for output in found.outputs if not output.loses_range} <= {"equal"}
        assert found.ran


def check_case(case: Case, book: str = "core") -> None:
    model, data = case.model(), sample(case.dtype)
    result = rewritten(model, book)
    assert not any(case.op_type in graph for graph in operators_by_graph(result))
    (found,) = run(result, {"x": data})
    expected = case.expected(data)
    assert found.shape == expected.shape
    tolerance = 4e-3 if case.dtype is np.float16 else 1e-5
    np.testing.assert_allclose(found.astype(np.float64), expected.astype(np.float64), rtol=tolerance)


CASES = pairwise(
    FORMS,
    OPERATORS,
    ((11, 0), (13, None), (18, 1), (21, 0)),
    possible=lambda form, op_type, how: Case(op_type, how[0], form, how[1]).is_possible(),
)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_axes_gives_what_numpy_gives(form: str) -> None:
    for _, op_type, (opset, keepdims) in [row for row in CASES if row[0] == form]:
        check_case(Case(op_type, opset, form, keepdims))


@pytest.mark.parametrize("op_type", OPERATORS)
def test_no_axes_may_mean_no_reduction(op_type: str) -> None:
    check_case(Case(op_type, 18, "absent", noop=1))


@pytest.mark.parametrize("op_type", OPERATORS)
def test_every_element_type_gives_what_numpy_gives(op_type: str) -> None:
    for dtype in (np.float16, np.float64, np.int32, np.int64):
        check_case(Case(op_type, 18, "one", 0, dtype=dtype))


@pytest.mark.parametrize("place", ["If", "Loop", "function", "function in If"])
def test_every_place_gives_what_numpy_gives(place: str) -> None:
    check_case(Case("ReduceLogSumExp", 18, "one", 0, place=place), "stable")


def test_a_node_that_is_refused_is_left_as_it_is() -> None:
    # An integer has no form in a book for floats only.
    book = RuleBook.from_functions([rule.function for rule in reducelower_floats("ReduceL2")], "floats")
    kinds = {"float": ["Abs"], "int32": ["ReduceL2"]}
    for kind, expected in kinds.items():
        text = f"g ({kind}[2, 3] x) => ({kind}[2, 1] y) <int64[1] a = {{1}}> {{ y = ReduceL2(x, a) }}"
        result = rewritten(parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> {text}'), book)
        (operators,) = computing(result)
        assert operators[:1] == expected


def reducelower_floats(op_type: str) -> list:
    from reducelower.rulebook import load_book

    return [rule for rule in load_book("stable").rules(op_type) if rule.element_types == "floating"]


def test_names_documentation_and_metadata_stay_with_the_result() -> None:
    model = Case("ReduceL2", 18, "one").model()
    model.graph.node[0].doc_string = "the norm"
    model.graph.node[0].metadata_props.add(key="layer", value="7")
    last = rewritten(model, "stable").graph.node[-1]
    assert (last.output[0], last.name, last.doc_string) == ("y", "reduce", "the norm")
    assert ("layer", "7") in [(entry.key, entry.value) for entry in last.metadata_props]


def test_a_set_of_rules_serves_several_models() -> None:
    rules = rewrite_rules("stable")
    for dtype in (np.float32, np.float64):
        model = Case("ReduceLogSumExp", 18, "one", dtype=dtype).model()
        result = rewriter.rewrite(model, pattern_rewrite_rules=rules)
        data = sample(dtype)
        np.testing.assert_allclose(run(result, {"x": data})[0], run(model, {"x": data})[0], rtol=1e-6)


def test_there_is_no_such_book() -> None:
    with pytest.raises(RuleError, match="neither a folder of rules nor a shipped book"):
        rewrite_rules("none")
