"""What differs between two models by structure: names do not count, everything else does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from reducelower import convert_version, expand
from reducelower.difference import Difference, difference
from reducelower.verification.regions.numbering import digested
from tests.verification.models import model

MODELS = Path(__file__).parents[1] / "data" / "models"
CHAIN = """g (float[2,3] x) => (float[2,1] y) <int64[1] a = {1}, float c = {2}>
{ r = Mul (x, c)  m = ReduceMean (r, a)  s = Neg (m)  t = Exp (s)  y = Relu (t) }"""


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


def kinds(found: Difference) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    return [(change.kind, change.before, change.after) for change in found.changes]


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


def test_constants_count_by_value_however_they_are_stored() -> None:
    spelled = model("""g (float[2,3] x) => (float[2,1] y) { c = Constant <value_float = 2.0> ()
        a = Constant <value_ints = [1]> ()  r = Mul (x, c)  m = ReduceMean (r, a)  s = Neg (m)  t = Exp (s)
        y = Relu (t) }""")
    assert difference(model(CHAIN), spelled).same


def test_operands_of_what_commutes_may_change_places() -> None:
    assert difference(model(CHAIN), model(CHAIN.replace("(x, c)", "(c, x)"))).same


def put(text: str, old: str, new: str) -> ModelProto:
    assert old in text
    return model(text.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "kind", "before", "after", "detail"),
    [
        ("Exp (s)", "Log (s)", "replaced", ("Exp",), ("Log",), ""),
        ("t = Exp (s)", "u = Abs (s) t = Exp (u)", "added", (), ("Abs",), ""),
        ("s = Neg (m)  t = Exp (s)", "t = Exp (m)", "removed", ("Neg",), (), ""),
        ("c = {2}", "c = {3}", "changed", ("Mul (B = 2)",), ("Mul (B = 3)",), "input B: 2 -> 3"),
        (
            "ReduceMean (r, a)",
            "ReduceMean <keepdims = 0> (r, a)",
            "changed",
            ("ReduceMean (axes = [1])",),
            ("ReduceMean (axes = [1], keepdims = 0)",),
            "attribute keepdims: not given -> 0",
        ),
        ("Relu (t)", "Identity (t)", "replaced", ("Relu",), ("Identity",), ""),
    ],
)
def test_one_change_is_found_where_it_stands(
    old: str, new: str, kind: str, before: tuple[str, ...], after: tuple[str, ...], detail: str
) -> None:
    found = difference(model(CHAIN), put(CHAIN, old, new))
    assert kinds(found) == [(kind, before, after)]
    assert found.changes[0].details == ((detail,) if detail else ())
    assert found.facts == ()


def test_a_default_that_is_written_out_is_the_same() -> None:
    assert difference(model(CHAIN), put(CHAIN, "ReduceMean (r, a)", "ReduceMean <keepdims = 1> (r, a)")).same


def test_operands_that_change_places_are_connected_otherwise() -> None:
    text = "g (float[2] x, float[2] z) => (float[2] y) { y = Sub (x, z) }"
    (change,) = difference(model(text), put(text, "(x, z)", "(z, x)")).changes
    assert change.kind == "connected otherwise"
    assert change.details == ("input A: value 'x' -> value 'z'", "input B: value 'z' -> value 'x'")


def test_changes_that_are_alike_are_told_once() -> None:
    text = """g (float[4] x) => (float[4] y) <float c = {1}>
        { a = Sin (x) b = Cos (a) d = Add (b, c) e = Sin (d) f = Neg (e) h = Sin (f) y = Tanh (h) }"""
    found = difference(model(text), put(put_text(text, "Sin (x)", "Sinh (x)"), "Sin (d)", "Sinh (d)"))
    (change,) = found.changes
    assert (change.kind, change.before, change.after, len(change.nodes)) == ("replaced", ("Sin",), ("Sinh",), 2)
    assert found.operators == (("Sin", 3, 1), ("Sinh", 0, 2))


def put_text(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new)


@pytest.mark.parametrize(
    ("change", "kind", "what", "before", "after"),
    [
        (lambda m: setattr(m, "ir_version", 9), "version", "IR version", "8", "9"),
        (lambda m: setattr(m.opset_import[0], "version", 19), "version", "opset", "18", "19"),
        (lambda m: setattr(m, "producer_name", "me"), "metadata", "producer name", "", "me"),
        (lambda m: m.metadata_props.add(key="k", value="v"), "metadata", "model metadata 'k'", "", "v"),
        (lambda m: setattr(m.graph, "doc_string", "d"), "metadata", "doc string of the graph", "", "d"),
        (
            lambda m: setattr(m.graph.node[1], "doc_string", "d"),
            "metadata",
            "node doc string of 'ReduceMean#1'",
            "",
            "d",
        ),
        (
            lambda m: m.graph.node[0].metadata_props.add(key="k", value="v"),
            "metadata",
            "node metadata 'k' of 'Mul#0'",
            "",
            "v",
        ),
        (
            lambda m: setattr(m.graph.input[0].type.tensor_type.shape.dim[0], "dim_param", "N"),
            "input",
            "'x'",
            "float[2,3]",
            "float[N,3]",
        ),
        (
            lambda m: setattr(m.graph.output[0].type.tensor_type, "elem_type", 11),
            "output",
            "'y'",
            "float[2,1]",
            "double[2,1]",
        ),
        (
            lambda m: m.graph.value_info.append(helper.make_tensor_value_info("s", 1, [2, 1])),
            "type",
            "value 's'",
            "",
            "stated",
        ),
        (
            lambda m: m.graph.initializer.append(numpy_helper.from_array(np.ones(3), "idle")),
            "constant",
            "constants that nothing reads in graph",
            "0 others",
            "1 others",
        ),
    ],
)
def test_what_is_stated_otherwise_is_named(
    change: Callable[[ModelProto], object], kind: str, what: str, before: str, after: str
) -> None:
    other = model(CHAIN)
    change(other)
    found = difference(model(CHAIN), other)
    assert [(fact.kind, fact.what, fact.before, fact.after) for fact in found.facts] == [(kind, what, before, after)]
    assert not found.changes
    assert not found.same


def test_inputs_of_other_names_stand_for_each_other_by_place() -> None:
    other = put(CHAIN.replace("(x, c)", "(data, c)"), "float[2,3] x", "float[2,3] data")
    found = difference(model(CHAIN), other)
    assert [(fact.kind, fact.what, fact.before, fact.after) for fact in found.facts] == [("input", "name", "x", "data")]
    assert not found.changes


def test_outputs_that_one_model_has_are_named_in_its_order() -> None:
    names = ["d", "b", "h", "a", "g", "c", "f", "e"]
    outputs = ", ".join(f"float[2,3] {name}" for name in names)
    source = model("g (float[2,3] x) => (float[2,3] y) { y = Relu (x) }")
    nodes = " ".join(f"{name} = Neg (x)" for name in names)
    other = model(f"g (float[2,3] x) => (float[2,3] y, {outputs}) {{ y = Relu (x) {nodes} }}")
    assert [fact.what for fact in difference(source, other).facts] == [repr(name) for name in names]
    assert [fact.what for fact in difference(other, source).facts] == [repr(name) for name in names]


BRANCHES = """g (float[2] x, bool c) => (float[2] y) {
    y = If (c) <then_branch = t () => (float[2] a) { p = Exp (x) a = Neg (p) },
                else_branch = e () => (float[2] b) { b = Abs (x) }> }"""
FUNCTIONS = """<domain: "local", opset_import: ["": 18]> f (a) => (b) { s = Exp (a) b = Neg (s) }"""


def test_a_branch_is_looked_into() -> None:
    (change,) = difference(model(BRANCHES), put(BRANCHES, "Abs (x)", "Sign (x)")).changes
    assert (change.kind, change.before, change.after) == ("replaced", ("Abs",), ("Sign",))
    assert change.nodes == (("graph/If#0.else_branch", "Abs#0"),)


def test_a_function_is_looked_into_once() -> None:
    body = "g (float[2] x) => (float[2] y) { u = local.f (x) y = local.f (u) }"
    before = model(body, functions=FUNCTIONS)
    (change,) = difference(before, model(body, functions=FUNCTIONS.replace("Exp", "Log"))).changes
    assert (change.before, change.after, change.nodes) == (("Exp",), ("Log",), (("functions/local::f", "Exp#0"),))


def test_a_default_of_a_function_counts() -> None:
    body = "g (float[2] x) => (float[2] y) { y = local.f (x) }"
    text = '<domain: "local", opset_import: ["": 18]> f <a: float = 1.0> (x) => (b) { b = Elu <alpha: float = @a> (x) }'
    before, after = (model(body, functions=each) for each in (text, text.replace("1.0", "2.0")))
    (fact,) = difference(before, after).facts
    assert (fact.kind, fact.what, fact.before, fact.after) == ("function", "attribute a of function local::f", "1", "2")


@pytest.mark.parametrize("what", ["initializer", "input", "output"])
def test_metadata_of_every_part_counts(what: str) -> None:
    before = model(CHAIN)
    after = model(CHAIN)
    getattr(after.graph, what)[0].metadata_props.add(key="k", value="v")
    assert [fact.kind for fact in difference(before, after).facts] == ["metadata"]


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
    told = "input B: float[16,16] -> float[16,16], 256 of 256 values differ, by up to "
    assert all(change.details[0].startswith(told) for change in found.changes)


def test_data_in_other_files_counts_by_content(tmp_path: Path) -> None:
    def stored(folder: str, location: str, top: float) -> ModelProto:
        given = model("g (float[40] x) => (float[40] y) { y = Mul (x, w) }")
        given.graph.initializer.append(numpy_helper.from_array(np.linspace(0, top, 40, dtype=np.float32), "w"))
        (tmp_path / folder).mkdir()
        onnx.save(given, tmp_path / folder / "m.onnx", save_as_external_data=True, location=location, size_threshold=0)
        loaded = onnx.load(tmp_path / folder / "m.onnx", load_external_data=False)
        digested(loaded, tmp_path / folder)
        return loaded

    first = stored("a", "weights.bin", 1)
    assert difference(first, stored("b", "other.bin", 1)).same
    (change,) = difference(first, stored("c", "weights.bin", 2)).changes
    assert change.details == ("input B: float[40] -> float[40], other values",)
    inside = model("g (float[40] x) => (float[40] y) { y = Mul (x, w) }")
    inside.graph.initializer.append(numpy_helper.from_array(np.linspace(0, 1, 40, dtype=np.float32), "w"))
    assert difference(first, inside).same


LAYERS = """g (float[4] x) => (float[4] y) <float v = {1}, float w = {2}>
    { a = Mul (x, v)  b = Exp (a)  c = Mul (b, w)  d = Exp (c)  y = Relu (d) }"""


def test_names_that_move_on_by_one_do_not_count() -> None:
    """As an exporter numbers them where a layer comes first."""
    after = """g (float[4] x) => (float[4] y) <float u = {3}, float v = {1}, float w = {2}>
        { a = Mul (x, u)  b = Exp (a)  c = Mul (b, v)  d = Exp (c)  e = Mul (d, w)  f = Exp (e)  y = Relu (f) }"""
    found = difference(model(LAYERS), model(after))
    assert kinds(found) == [("added", (), ("Mul (B = 3)", "Exp"))]
    assert found.alike == 5


def test_names_that_change_places_do_not_count() -> None:
    text = "g (float[2] p, float[2] q) => (float[2] y) { a = Exp (p)  b = Exp (q)  y = Sub (a, b) }"
    swapped = "g (float[2] p, float[2] q) => (float[2] y) { b = Exp (p)  a = Exp (q)  y = Sub (b, a) }"
    assert difference(model(text), model(swapped)).same


def test_one_name_for_two_constants_does_not_make_nodes_alike() -> None:
    swapped = put_text(put_text(LAYERS, "v = {1}", "v = {2}"), "w = {2}", "w = {1}")
    found = difference(model(LAYERS), model(swapped))
    assert kinds(found) == [
        ("changed", ("Mul (B = 1)",), ("Mul (B = 2)",)),
        ("changed", ("Mul (B = 2)",), ("Mul (B = 1)",)),
    ]


def test_names_tell_which_of_several_nodes_changed() -> None:
    """Structure alone takes the pool and what follows it as replaced together."""
    text = "g (float[1,1,4,4] x) => (bool[1,1,2,2] y) { p = MaxPool <kernel_shape = [3,3], dilations = [1,1]> (x)  %s }"
    before = model(text % "y = Equal (p, p)")
    after = model(text.replace(", dilations = [1,1]", "") % "l = Less (p, p)  m = Greater (p, p)  y = Or (l, m)")
    other = put_text(text, ", dilations = [1,1]", ", pads = [0,0,0,0]") % "y = Equal (p, p)"
    assert [change.kind for change in difference(before, after).changes] == ["changed", "replaced"]
    assert [change.kind for change in difference(before, model(other)).changes] == ["changed"]


def test_a_branch_that_reads_another_value_differs() -> None:
    text = """g (float[2] x, bool c) => (float[2] y) { p = Exp (x)  q = Neg (x)
        y = If (c) <then_branch = t () => (float[2] a) { a = Abs (p) },
                    else_branch = e () => (float[2] b) { b = Abs (q) }> }"""
    (change,) = difference(model(text), put(text, "Abs (q)", "Abs (p)")).changes
    assert change.kind == "connected otherwise"
    assert change.details == ("input X: value 'q' -> value 'p'",)


def test_what_lies_around_a_branch_may_have_other_names() -> None:
    text = """g (float[2] x, bool c) => (float[2] y) <float w = {1}> { p = Exp (x)  q = Neg (x)
        y = If (c) <then_branch = t () => (float[2] a) { a = Mul (p, w) },
                    else_branch = e () => (float[2] b) { b = Abs (q) }> }"""
    other = put_text(text, "{ p = Exp (x)", "{ r = Exp (x)").replace("Mul (p, w)", "Mul (r, v)")
    assert difference(model(text), put(other, "float w", "float v")).same
    (change,) = difference(model(text), put(text, "{1}", "{3}")).changes
    assert "Mul" in change.before[0]
    assert (change.kind, change.details) == ("changed", ("input B: 1 -> 3",))


def test_nodes_of_one_kind_are_told_apart_by_what_is_next_to_them() -> None:
    """Under other names and in another order, where what comes first and what comes last has changed."""
    before = """g (float[2] x) => (float[2] y) {
        a = Sin (x)  b = Exp (a)  c = Cos (b)  d = Tan (x)  e = Exp (d)  f = Neg (e)  y = Add (c, f) }"""
    after = """g (float[2] x) => (float[2] y) {
        o = Abs (x)  p = Tan (o)  q = Exp (p)  r = Neg (q)  s = Sin (o)  t = Exp (s)  u = Cos (t)  y = Sub (u, r) }"""
    found = difference(model(before), model(after))
    assert kinds(found) == [("added", (), ("Abs",)), ("replaced", ("Add",), ("Sub",))]
    assert found.alike == 6


def test_nodes_of_one_kind_are_told_apart_by_all_that_follows(models: Path) -> None:
    given = onnx.load(models / "skl_knnc_17.onnx")
    found = difference(given, renamed(convert_version(given, 20)))
    assert len(found.changes) == 1
    assert found.alike == sum(node.op_type != "Constant" for node in all_nodes(given)) - 1


def test_outputs_that_change_places_with_their_names_differ_in_names_alone() -> None:
    before = "g (float[2] x) => (float[2] p, float[2] q) { p = Exp (x)  q = Exp (x) }"
    after = "g (float[2] x) => (float[2] q, float[2] z) { q = Exp (x)  z = Exp (x) }"
    found = difference(model(before), model(after))
    assert {fact.kind for fact in found.facts} == {"output"}
    assert not found.changes


READ_IN_BRANCHES = """g (float[2] x, bool c) => (float[2] y) { v = Abs (x)
    y = If (c) <then_branch = t () => (float[2] p) { p = Neg (v) }, else_branch = e () => (float[2] q) { q = Relu (v) }>
    }"""


@pytest.mark.parametrize(
    ("new", "told"),
    [
        ("v = Tanh (x)", ("replaced", ("Abs",), ("Tanh",))),
        ("w = Abs (x)  v = Neg (w)", ("added", (), ("Neg",))),
        ("v = Identity (x)", ("replaced", ("Abs",), ("Identity",))),
    ],
)
def test_what_branches_read_is_told_where_it_is_computed(new: str, told: tuple[str, ...]) -> None:
    assert kinds(difference(model(READ_IN_BRANCHES), put(READ_IN_BRANCHES, "v = Abs (x)", new))) == [told]


def test_a_branch_that_reads_what_another_node_computes_differs() -> None:
    text = READ_IN_BRANCHES.replace("v = Abs (x)", "v = Abs (x)  w = Tanh (x)")
    (change,) = difference(model(text), put(text, "Neg (v)", "Neg (w)")).changes
    assert (change.kind, change.details) == ("connected otherwise", ("input X: value 'v' -> value 'w'",))


def test_outputs_that_change_places_are_told_by_what_computes_them() -> None:
    text = "g (float[2] x) => (float[2] a, float[2] b) { a = Relu (x)  b = Neg (x) }"
    swapped = "g (float[2] x) => (float[2] a, float[2] b) { b = Relu (x)  a = Neg (x) }"
    details = [change.details for change in difference(model(text), model(swapped)).changes]
    assert details == [
        ("output 'a': value 'a' of Relu 'Relu#0' -> value 'a' of Neg 'Neg#1'",),
        ("output 'b': value 'b' of Neg 'Neg#1' -> value 'b' of Relu 'Relu#0'",),
    ]
    text = "g (float[2] x) => (float[1] a, float[1] b) { a, b = Split (x) }"
    first, _ = difference(model(text), put(text, "a, b =", "b, a =")).changes
    told = "output 'a': value 'a' of Split 'Split#0', output 0 -> value 'a' of Split 'Split#0', output 1"
    assert first.details == (told,)


def test_of_equal_nodes_the_one_that_changed_is_told() -> None:
    text = "g (float[2] x, float[2] z) => (float[2] p, float[2] q) { [one] p = Sub (x, z)  [two] q = Sub (x, z) }"
    (change,) = difference(model(text), put(text, "[one] p = Sub (x, z)", "[one] p = Sub (z, x)")).changes
    assert change.nodes == (("graph", "one"),)


def test_the_sign_of_a_zero_is_a_difference_that_is_named() -> None:
    def scaled(by: list[float]) -> ModelProto:
        given = model("g (float[2] x) => (float[2] y) { y = Mul (x, k) }")
        given.graph.initializer.append(numpy_helper.from_array(np.float32(by), "k"))
        return given

    (change,) = difference(scaled([0.0, 1.0]), scaled([-0.0, 1.0])).changes
    assert change.details[0].endswith("1 of 2 values differ in the sign of zero or NaN")


def test_changes_come_in_the_order_of_the_first_model() -> None:
    text = "g (float[2] x) => (float[2] y) { a = Sin (x)  b = Cos (a)  y = Tan (b) }"
    after = "g (float[2] x) => (float[2] y) { a = Sinh (x)  b = Cos (a)  c = Tan (b)  y = Abs (c) }"
    assert [kind for kind, _, _ in kinds(difference(model(text), model(after)))] == ["replaced", "added"]


def test_changes_in_branches_come_in_the_order_of_the_nodes_that_hold_them() -> None:
    operators = ["Add", "Sub", "Mul", "Div", "Max", "Min", "Pow"]
    branches = [
        f"r{at} = If (c) <then_branch = t () => (float[2] a{at}) {{ a{at} = {op} (x, w) }}, "
        f"else_branch = e () => (float[2] b{at}) {{ b{at} = Neg (x) }}>"
        for at, op in enumerate(operators)
    ]
    total = f"y = Sum ({', '.join(f'r{at}' for at in range(len(operators)))})"
    text = f"g (float[2] x, bool c) => (float[2] y) <float w = {{1}}> {{ {'  '.join([*branches, total])} }}"
    found = difference(model(text), put(text, "{1}", "{3}"))
    assert [change.before[0].partition(" ")[0] for change in found.changes] == operators


def test_an_identity_is_not_taken_for_the_node_that_it_reads() -> None:
    before = "g (float[2] x) => (float[2] y) { a = Relu (x)  i = Identity (a)  b = Relu (x)  y = Add (i, b) }"
    after = "g (float[2] x) => (float[2] y) { c = Relu (x)  d = Relu (x)  y = Add (c, d) }"
    found = difference(model(before), model(after))
    assert (kinds(found), found.alike) == ([("removed", ("Identity",), ())], 3)


def test_the_type_of_every_output_counts() -> None:
    text = "g (float[2] x) => (float[1] y) { a, b = Split (x)  y = Add (a, b) }"
    before, after = model(text), model(text)
    before.graph.value_info.append(helper.make_tensor_value_info("b", 1, [1]))
    after.graph.value_info.append(helper.make_tensor_value_info("b", 1, ["N"]))
    (fact,) = difference(before, after).facts
    assert (fact.what, fact.before, fact.after) == ("value 'b'", "float[1]", "float[N]")
