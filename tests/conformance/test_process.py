"""Worker processes: what a runtime does to its own process is a finding and never the end."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import pytest

from reducelower.conformance.case import Case
from reducelower.conformance.process import Answer, Subject, UnusableError, Worker
from tests.conformance.made import fake, reductions

HERE = Path(__file__).parent
PLAIN = reductions("ReduceSum")[0]
FED = next(case for case in reductions("ReduceSum") if case.features.axes == "dynamic")


def subject(name: str) -> Subject:
    return Subject(name, fake(name).arguments)


def run(name: str, *cases: Case, time_limit: float = 60) -> list[Answer]:
    with Worker(subject(name), time_limit) as worker:
        return [worker.run(case.model, case.inputs) for case in cases]


def test_outputs_come_back_as_they_were() -> None:
    (answer,) = run("right", PLAIN)
    assert answer.kind == "outputs"
    np.testing.assert_allclose(answer.outputs[0], PLAIN.expected[0], rtol=1e-6)
    assert answer.outputs[0].dtype == np.float32


def test_the_version_is_that_of_the_module() -> None:
    with Worker(subject("right"), 60) as worker:
        worker.start()
        assert worker.version == "1.0"


def test_after_a_crash_the_next_model_runs() -> None:
    crashed, after = run("crashing_on_fed_axes", FED, PLAIN)
    assert (crashed.kind, after.kind) == ("crash", "outputs")
    assert crashed.text == "it was ended by SIGABRT: error: the axes are not constant"


def test_after_the_time_limit_the_next_model_runs() -> None:
    with Worker(subject("hanging_on_fed_axes"), 60) as worker:
        worker.start()
        assert worker.run(PLAIN.model, PLAIN.inputs).kind == "outputs"
    hung, after = run("hanging_on_fed_axes", FED, PLAIN, time_limit=2)
    assert (hung.kind, after.kind) == ("hang", "outputs")
    assert hung.text == "no answer within 2 s"


def test_a_model_may_take_as_long_as_it_likes() -> None:
    (answer,) = run("right", PLAIN, time_limit=float("inf"))
    assert answer.kind == "outputs"


def test_leaving_is_a_crash_with_a_status() -> None:
    (answer,) = run("leaving", PLAIN)
    assert (answer.kind, answer.text) == ("crash", "it ended with exit status 7")


def test_an_exception_is_told_in_its_words() -> None:
    case = next(case for case in reductions("ReduceSum") if case.features.element_types == "int64")
    (answer,) = run("without_int64", case)
    assert (answer.kind, answer.text) == ("error", "NotImplementedError: no int64 here")


def test_what_a_runtime_prints_is_not_taken_for_an_answer() -> None:
    first, second = run("chatty", PLAIN, PLAIN)
    assert (first.kind, second.kind) == ("outputs", "outputs")


def test_an_output_that_is_no_array_is_refused() -> None:
    (answer,) = run("no_array", PLAIN)
    assert (answer.kind, answer.text) == ("error", "TypeError: an output is not an array")


def test_a_type_that_numpy_lacks_comes_back() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    data = np.array([1.5, -2.0], ml_dtypes.bfloat16)
    from reducelower.conformance.process import _with_type
    from reducelower.conformance.worker import pack, unpack

    back = _with_type(unpack(pack({"output:0": data})), "output:0")
    assert back.dtype == data.dtype
    assert back.tolist() == data.tolist()


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (Subject.of_function("x", "no_such_module:run"), "No module named 'no_such_module'"),
        (Subject.of_function("x", "json:no_such_function"), "no_such_function"),
        (Subject("x", ("runtime", "x", str(HERE / "fakes.py"))), "has no attribute"),
        (Subject.of_runtime("onnxruntime", "/nowhere/python"), "/nowhere/python does not start"),
        (Subject.of_runtime("onnxruntime", sys.executable + "-not"), "does not start"),
    ],
    ids=str,
)
def test_what_cannot_be_run_at_all_says_why(made: Subject, reason: str) -> None:
    with Worker(made, 60) as worker, pytest.raises(UnusableError, match=reason):
        worker.run(PLAIN.model, PLAIN.inputs)


RUNNER = """
import sys
import numpy as np
sys.path.insert(0, {here!r})
import fakes
model, inputs, outputs = sys.argv[1:]
with np.load(inputs) as archive:
    given = dict(archive)
if "axes" in given:
    print("no fed axes")
    sys.exit(3)
with open(model, "rb") as file:
    results = fakes.right(file.read(), given)
np.savez(outputs, *results)
"""


def test_a_command_is_handed_files(tmp_path: Path) -> None:
    script = tmp_path / "a runner.py"
    script.write_text(RUNNER.format(here=str(HERE)))
    command = Subject.of_command("mine", f"{sys.executable} '{script}' {{model}} {{inputs}} {{outputs}}")
    with Worker(command, 60) as worker:
        good, bad = (worker.run(case.model, case.inputs) for case in (PLAIN, FED))
    np.testing.assert_allclose(good.outputs[0], PLAIN.expected[0], rtol=1e-6)
    assert (bad.kind, bad.text) == ("error", "RuntimeError: exit status 3: no fed axes")


def test_a_command_that_writes_nothing_is_refused() -> None:
    command = Subject.of_command("mine", f"{sys.executable} -c pass {{model}} {{inputs}} {{outputs}}")
    with Worker(command, 60) as worker:
        answer = worker.run(PLAIN.model, PLAIN.inputs)
    assert (answer.kind, answer.text) == ("error", "RuntimeError: the command ended well but wrote no outputs")


def test_nothing_that_a_command_started_lives_on(tmp_path: Path) -> None:
    """The grandchild writes a dot every hundredth of a second."""
    dots = tmp_path / "dots"
    child = f"import time, pathlib\nwith open({str(dots)!r}, 'a') as file:\n"
    child += "    while True:\n        print(end='.', file=file, flush=True)\n        time.sleep(0.01)"
    script = tmp_path / "runner.py"
    script.write_text(f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {child!r}])\n")
    command = Subject.of_command("mine", f"{sys.executable} {script} {{model}} {{inputs}} {{outputs}}")
    with Worker(command, 1) as worker:
        assert worker.run(PLAIN.model, PLAIN.inputs).kind == "hang"
    written = dots.stat().st_size
    assert written
    time.sleep(0.3)
    assert dots.stat().st_size == written


def test_outputs_that_are_no_list_are_refused() -> None:
    (answer,) = run("no_list", PLAIN)
    assert (answer.kind, answer.text) == ("error", "TypeError: it returned a dict, not a list of arrays")
