"""What the resolver tells of a value is what a run shows, whatever the sizes are."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, helper, parser

from reducelower.model.document import Document
from reducelower.scope.graph import GraphScope
from reducelower.scope.ground import Ground
from reducelower.types import Atoms, Inference, Polynomial, Resolver, Size
from reducelower.types.graphs import Graph
from tools.node_cases import Case, cases

pytestmark = pytest.mark.xdist_group("onnx's cases")


class _Told(Atoms):
    """Atoms with what they stand for."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: dict[int, Hashable] = {}

    def __call__(self, key: Hashable) -> Polynomial:
        size = super().__call__(key)
        self.keys[next(iter(size.atoms))] = key
        return size


class _UnknownError(Exception):
    pass


def with_named_sizes(model: ModelProto) -> tuple[ModelProto, dict[Hashable, int]]:
    """A copy whose inputs have a name for every size, and that states nothing else; and the sizes by name."""
    copy = ModelProto()
    copy.CopyFrom(model)
    del copy.graph.value_info[:]
    for output in copy.graph.output:
        output.ClearField("type")
    sizes: dict[Hashable, int] = {}
    for value in copy.graph.input:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            name = f"{value.name.replace('-', '_')}_{axis}_size"
            sizes[name] = dim.dim_value
            dim.dim_param = name
    return copy, sizes


def number(size: Size, told: _Told, sizes: dict[Hashable, int]) -> int:
    """What a size comes to."""
    if isinstance(size, int):
        return size
    total = 0
    for monomial, coefficient in size.terms:
        product = coefficient
        for atom in monomial:
            product *= _of_atom(told.keys[atom], told, sizes)
        total += product
    return total


def _of_atom(key: Hashable, told: _Told, sizes: dict[Hashable, int]) -> int:
    if key in sizes:
        return sizes[key]
    match key:
        case ("Div" | "Mod" | "Max" | "Min" as operation, int() | Polynomial() as left, int() | Polynomial() as right):
            one, other = number(left, told, sizes), number(right, told, sizes)
            return {"Div": int(one / other), "Mod": one % other, "Max": max(one, other), "Min": min(one, other)}[
                operation
            ]
    raise _UnknownError  # the size of a value of which nothing else is known


def disagreements(case: Case) -> tuple[list[str], int]:
    """Where the resolver tells something else than the case, and how much it tells."""
    model, sizes = with_named_sizes(case.model)
    opset = model.opset_import[0].version
    ground = Ground(Document(model), opset)
    graph, told, found, wrong = GraphScope(ground, model.graph, opset, "graph", key=()), _Told(), 0, []
    resolver = Resolver(lambda: told)
    for value, given in zip(model.graph.output, case.outputs, strict=True):
        if not isinstance(given, np.ndarray | np.generic):
            continue
        known = resolver.known(value.name, graph)
        actual = np.asarray(given)
        pairs: list[tuple[Size | None, int]] = [*zip(known.shape or (), actual.shape, strict=False)]
        if known.shape is not None and len(known.shape) != actual.ndim:
            wrong.append(f"{case.name}: rank {len(known.shape)}, not {actual.ndim}")
        if known.elements is not None:
            pairs += zip(known.elements, actual.reshape(-1).tolist(), strict=False)
        for size, expected in pairs:
            try:
                if size is not None and number(size, told, sizes) != expected:
                    wrong.append(f"{case.name}: {size} of {sizes}, not {expected}")
                found += size is not None
            except _UnknownError:
                continue
    return wrong, found


def test_sizes_are_those_of_onnx_s_own_cases() -> None:
    wrong, known = [], 0
    for case in cases():
        unlike, found = disagreements(case)
        wrong += unlike
        known += found
    assert not wrong
    assert known > 1500


def _with_open_sizes(model: ModelProto) -> ModelProto:
    """A copy that states ranks alone, and how long vectors of integers are, which may be how many axes there are."""
    copy, _ = with_named_sizes(model)
    for value, own in zip(copy.graph.input[1:], model.graph.input[1:], strict=True):
        if len(own.type.tensor_type.shape.dim) == 1 and own.type.tensor_type.elem_type in (6, 7):
            value.CopyFrom(own)
    return copy


def test_the_rank_of_what_a_node_gives_follows_from_ranks_and_lengths() -> None:
    unknown, wrong = set(), []
    for case in cases():
        if len(case.model.graph.node) != 1 or not isinstance(case.outputs[0], np.ndarray | np.generic):
            continue
        model, name = _with_open_sizes(case.model), case.model.graph.output[0].name
        found = Inference(model).types(()).get(name)
        if found is None or not found.tensor_type.HasField("shape"):
            unknown.add(case.operator)
        elif len(found.tensor_type.shape.dim) != np.ndim(case.outputs[0]):
            wrong.append(case.name)
    assert not wrong
    # The length of the first input, or the last size of an input, says what the rank is; Scan of opset 8 had a batch.
    assert unknown <= {"ConstantOfShape", "GatherND", "Loop", "Scan"}


@pytest.mark.parametrize(("scanned", "stacked"), [(0, 0), (1, 0), (0, 1), (-1, -1), (1, -2)])
def test_a_scan_tells_the_rank_of_what_it_stacks_and_no_wrong_size(scanned: int, stacked: int) -> None:
    model = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 17]> g (float[1] s, float[4, 3] x) => (float t, float y) {{
        t, y = Scan <num_scan_inputs = 1, scan_input_axes = [{scanned}], scan_output_axes = [{stacked}],
            body = body (float[1] a, b) => (float[1] c, d) {{ c = Identity (a)  d = Mul (a, b) }}> (s, x) }}"""
    )
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    given = np.ones(1, np.float32), np.ones((4, 3), np.float32)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    _, stacks = session.run(None, dict(zip(("s", "x"), given, strict=True)))
    found = Inference(model).types(())["y"]
    sizes = [dim.dim_value for dim in found.tensor_type.shape.dim]
    assert len(sizes) == stacks.ndim
    assert all(size in (0, actual) for size, actual in zip(sizes, stacks.shape, strict=True))


def test_what_an_unknown_operator_passes_to_its_graph_is_unknown() -> None:
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17, "my" : 1]> g (float[4,8] x) => (y) {
        y = my.Scored <body = b (float[n,m] v) => (float[n,m] w) { w = Neg (v) }> (x) }"""
    )
    inference = Inference(model)
    shape = inference.known("w", inference.graph((0, 0))).shape
    assert shape is not None and not any(isinstance(size, int) for size in shape)


def test_what_a_sum_without_axes_keeps_is_no_sum() -> None:
    graph = Graph(
        parser.parse_graph(
            "g () => (int64[2] y) { x = Constant <value_ints = [2, 3]> () axes = Constant <value_ints: ints = []> () "
            "y = ReduceSum <noop_with_empty_axes = 1> (x, axes) }"
        ),
        None,
        imports=[helper.make_opsetid("", 18)],
    )
    assert Resolver().known("y", graph).elements in (None, (2, 3))


def test_positions_up_to_a_size_are_as_many() -> None:
    """As exporters write the positions of tokens."""
    given = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]> g (int64[n, m] x) => (int64[p] y)
        <int64 zero = {0}, int64 one = {1}> {
            s = Shape (x)  m = Gather (s, one)  y = Range (zero, m, one) }"""
    )
    inference = Inference(given)
    graph = inference.graph(())
    assert inference.known("y", graph).shape == inference.known("x", graph).shape[1:]


@pytest.mark.parametrize("node", ["NonZero (s)", "Not (c)", "ReduceMax <keepdims = 0> (s)", "Range (zero, size, one)"])
def test_what_depends_on_a_size_that_has_a_name_is_unknown(node: str) -> None:
    given = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 13]> g (float[n, 2] x) => (y) <int64 zero = {{0}}, int64 one = {{1}}> {{
            s = Shape (x)  size = Size (x)  c = Cast <to = 9> (s)  y = {node} }}"""
    )
    inference = Inference(given)
    assert inference.known("y", inference.graph(())).numbers is None


def test_what_a_scan_carries_is_not_what_it_begins_with() -> None:
    given = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]> g (float[4] x) => (float[4] t, int64[1] last)
        <int64[1] start = {0}, int64[1] one = {1}> {
            last, t = Scan <num_scan_inputs = 1, body = body (int64[1] s, float e) => (int64[1] n, float f) {
                n = Add (s, one)  f = Neg (e) }> (start, x) }"""
    )
    inference = Inference(given)
    assert inference.ask(inference.graph(()), "constant", "last") is None
    assert inference.ask(inference.graph((0, 0)), "constant", "s") is None
