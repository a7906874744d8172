"""Runs that take more memory than is allowed are ended there, and what is said of their size is no more than they take.

Peaks are those of processes of their own.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from reducelower import convert_version
from reducelower.verification import verify
from reducelower.verification.running.conditions import under
from reducelower.verification.running.memory import TooLargeError
from reducelower.verification.running.runtimes import OnnxRuntime, ReferenceRuntime, runtime_named
from reducelower.verification.running.sizes import inferred
from reducelower.verification.running.source import CannotRunError, Source, with_outputs
from tests.forked import ended, forked
from tests.models import model
from tests.table import rows

from .tables import written

needs_peaks = pytest.mark.skipif(sys.platform != "linux", reason="peaks are read from /proc")


ROWS = rows(Path(__file__).with_name("large_inside.toml"), fields={"graph", "let", "runtime", "sizes"})


SMALL = model("g (float[2] x) => (float[2] y) { y = Neg (x) }")


def peak() -> int:
    """The most bytes that this process has held at once."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def set_back() -> None:
    """Hand back what this process holds free, and forget its peak: both are of what ran here before."""
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def of_one_run(given: ModelProto, runtime: str, sizes: dict[str, list[int]], allowed: float) -> list[Any]:
    """What a run takes that is ended for its size, and what is said; then both without a bound."""
    feeds = {name: np.ones(shape, np.float32) for name, shape in sizes.items()}
    with under(memory=1.0):  # what is imported for a first run is none of what one takes
        runtime_named(runtime).load(Source(SMALL)).run({"x": np.ones(2, np.float32)})
    found: list[Any] = []
    for memory in (allowed, None):
        with under(memory=memory):
            session = runtime_named(runtime).load(Source(given))
            set_back()
            start, said = resident(), ""
            try:
                session.run(feeds)
            except CannotRunError as error:
                said = error.reason
        found += [peak() - start, said]
    return found


def of_verifying(given: ModelProto, allowed: float) -> list[Any]:
    """What verifying takes, its verdict, and what it leaves open."""
    verify(SMALL, SMALL)
    set_back()
    start = resident()
    found = verify(given, given, memory=allowed)
    return [peak() - start, found.verdict, found.unseen]


def measured(work: Callable[[], list[Any]], place: Path) -> list[Any]:
    """What is found in a process of its own."""

    def write() -> int:
        place.write_text(json.dumps(work()))
        return 0

    with Path(os.devnull).open("r+") as nothing:
        assert ended(forked(write, (nothing.fileno(), nothing.fileno(), 2))) == 0
    found: list[Any] = json.loads(place.read_text())
    return found


def said_in_bytes(reason: str) -> float:
    before = "it takes at least " if "at least" in reason else "than the "
    number, unit = reason.split(before)[1].split()[:2]
    return float(number) * {"GB": 1e9, "MB": 1e6}[unit]


@needs_peaks
@pytest.mark.parametrize("claim", ROWS)
def test_a_run_is_ended_before_it_takes_more_than_is_allowed(claim: str, tmp_path: Path) -> None:
    row = ROWS[claim]
    given = written({"let": row.get("let", {}), "opset": 20}, row["graph"], {})
    runtime, sizes = row.get("runtime", "onnxruntime"), row["sizes"]
    begun, reason, took, said = measured(lambda: of_one_run(given, runtime, sizes, 0.001), tmp_path / "found")
    assert said == ""
    assert begun < 24e6  # of one case, 17 MB are fed
    assert 1e6 <= said_in_bytes(reason) < 1.3 * took


_OF_4_M = "g (float[4, 1000, 1000] x) => (float[4, 1000, 1000] y) { a = Relu (x) b = Exp (a) y = Neg (b) }"


@needs_peaks
@pytest.mark.parametrize(("allowed", "verdict"), [(0.45, "equivalent"), (0.2, "not shown")])
def test_verification_stays_below_what_is_allowed(allowed: float, verdict: str, tmp_path: Path) -> None:
    given = model(_OF_4_M, 20)
    took, found, unseen = measured(lambda: of_verifying(given, allowed), tmp_path / "found")
    assert found == verdict
    assert took < allowed * 1e9
    if verdict == "not shown":
        assert "--verify-memory allows 0.2 GB; raise it" in str(unseen)
        assert "--dim" not in str(unseen)  # no size is free


def _tiled(times: int) -> ModelProto:
    return model(
        f"g (float[A, B] x) => (float[C, D] y) <int64[2] r = {{{times}, {times}}}> {{ a = Tile (x, r) y = Neg (a) }}"
    )


def test_smaller_inputs_are_tried_where_sizes_are_free() -> None:
    tiled = _tiled(800)  # 3 x 2 and 2 x 2 of these take more, 1 x 1 do not
    found = verify(tiled, tiled, memory=0.1)
    assert found.equivalent
    assert [output.shape_before for output in found.outputs] == [(800, 800)]


@pytest.mark.parametrize(("side", "fits"), [(500, True), (800, False)])
def test_a_model_whose_smallest_inputs_take_too_much_is_not_shown(side: int, fits: bool) -> None:
    tiled = _tiled(side)
    found = verify(tiled, tiled, memory=0.03)
    assert found.equivalent is fits
    assert fits or "it takes at least " in found.reason


def test_weights_whose_shapes_are_stated_once_more_as_exporters_do_are_no_larger_for_it() -> None:
    layer = "c{0} = Conv <pads = [1, 1, 1, 1]> (x{0}, w)  x{1} = Concat <axis = 0> (c{0}, x{0})"
    layers = "  ".join(layer.format(at, at + 1) for at in range(8))
    given = model(f"g (float[1, 4, 8, 8] x0) => (float[M, 4, 8, 8] x8) {{ {layers} }}", 18)
    given.graph.initializer.append(numpy_helper.from_array(np.full((4, 4, 3, 3), 0.01, np.float32), "w"))
    given.graph.value_info.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, (4, 4, 3, 3)))
    feeds = {"x0": np.zeros((1, 4, 8, 8), np.float32)}
    graph = inferred(given, feeds)
    assert graph is not None
    sizes = {value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in graph.value_info}
    assert sizes["c7"] == [2**7, 4, 8, 8]
    assert verify(given, convert_version(given, 13), memory=0.01).equivalent


def test_parts_are_fed_what_a_run_gave_them_for_as_many_at_once_as_memory_allows() -> None:
    """What two normalizations read takes 41 MB together."""
    given = model(
        "g (float[2, N, 64] x, float[2, N, 64] z) => (float[2, N, 1] y) <int64[1] a = {2}, float large = {1000000}> "
        "{ e = Tanh (x)  p = LayerNormalization (e, c)  f = Softmax (z) "
        "q = LayerNormalization <epsilon = 0.001> (f, c)  s = ReduceSum (p, a)  t = ReduceSum (q, a)  u = Add (s, t) "
        "y = Mul (u, large) }",
        18,
    )
    given.graph.initializer.append(numpy_helper.from_array(np.ones(64, np.float32), "c"))
    found = verify(given, convert_version(given, 13), dims={"N": 2000}, memory=0.03)
    assert found.equivalent, found
    assert any("rounding which the model amplifies" in note for note in found.notes)


def test_sizes_that_follow_from_a_range_of_a_computed_size_are_known() -> None:
    """onnx's inference follows no Range; a guess would take what the weights of the product take."""
    given = model(
        "g (float[N, 8] x) => (float[N, 512] y) <int64 zero = {0}, int64 one = {1}, int64[1] at = {0}> {"
        "  s = Shape (x)  n = Gather <axis = 0> (s, zero)  r = Range (zero, n, one)  c = Gather <axis = 0> (x, r)"
        "  y = MatMul (c, w) }",
        18,
    )
    given.graph.initializer.append(numpy_helper.from_array(np.ones((8, 512), np.float32), "w"))
    graph = inferred(given, {"x": np.zeros((2, 8), np.float32)})
    assert graph is not None
    known = {value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in graph.value_info}
    assert (known["r"], known["c"]) == ([2], [2, 8])


def test_what_is_only_looked_at_takes_less_than_what_is_compared() -> None:
    given = model("g (float[1000, 1000] x) => (float[1000, 1000] y) { y = MatMul (x, x) }", 18)
    feeds = {"x": np.zeros((1000, 1000), np.float32)}
    with under(memory=0.06):
        (seen,) = OnnxRuntime().load(Source(with_outputs(given, ["y"]))).run(feeds)
        with pytest.raises(TooLargeError, match="it takes at least 64 MB of memory"):
            OnnxRuntime().load(Source(given)).run(feeds)
    assert seen.shape == (1000, 1000)


@pytest.mark.parametrize(
    ("takes", "said"),
    [
        (2.04e9, "it takes at least 2.0 GB of memory at these sizes, and --verify-memory allows 1.0 GB"),
        (1.04e9, "it takes more memory at these sizes than the 1.0 GB that --verify-memory allows"),
    ],
)
def test_a_bound_that_reads_like_the_limit_is_not_told(takes: float, said: str) -> None:
    with under(memory=1.0):
        assert TooLargeError.of(takes).reason == said


def test_weights_are_not_counted_in() -> None:
    given = model("g (float[1, 2000] x) => (float[1, 2000] y) { y = MatMul (x, w) }", 18)
    given.graph.initializer.append(numpy_helper.from_array(np.ones((2000, 2000), np.float32), "w"))
    with under(memory=0.001):
        assert OnnxRuntime().load(Source(given)).run({"x": np.ones((1, 2000), np.float32)})[0].shape == (1, 2000)


def test_each_session_has_the_bound_of_its_time() -> None:
    given = Source(model("g (float[N] x, int64[1] s) => (float[1] y) { a = Expand (x, s) y = ReduceMax (a) }", 18))
    feeds = {"x": np.ones(1, np.float32), "s": np.array([10_000_000])}
    with under(memory=0.1):
        wide = OnnxRuntime().load(given)
    with under(memory=0.01):
        narrow = OnnxRuntime().load(given)
        assert wide.run(feeds)[0].tolist() == [1]
        with pytest.raises(TooLargeError):
            narrow.run(feeds)


def test_tensors_of_a_sequence_may_have_any_sizes() -> None:
    given = model("g (float[3] x) => (seq(float[N]) y) <int64[2] s = {1, 2}> { y = SplitToSequence (x, s) }", 18)
    feeds = {"x": np.zeros(3, np.float32)}
    (found,) = OnnxRuntime().load(Source(given)).run(feeds)
    assert [item.shape for item in found] == [(1,), (2,)]
    with under(memory=150e-9), pytest.raises(TooLargeError):
        OnnxRuntime().load(Source(given)).run(feeds)


def test_a_node_of_which_nothing_is_read_runs_in_the_evaluator() -> None:
    given = model("g (float[4] x) => (float[4] y) { y = Neg (x) }", 13)
    given.graph.node.add(op_type="Abs", input=["x"], output=[""])
    (found,) = ReferenceRuntime().load(Source(given)).run({"x": np.ones(4, np.float32)})
    assert found.tolist() == [-1] * 4
