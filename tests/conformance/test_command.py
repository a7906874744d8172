"""`reducelower probe` from end to end."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser

from reducelower.conformance.case import Case
from reducelower.conformance.distilling import distil
from reducelower.conformance.mending import corrected, without_bad_forms
from reducelower.conformance.process import Worker
from reducelower.conformance.reduce_cases import Depth, reduce_cases
from reducelower.conformance.running import probe
from reducelower.runtimes import Runtime, load_runtime, read_runtime
from tests.conformance.made import DAY, fake
from tests.conformance.test_process import RUNNER

HERE = Path(__file__).parent

Cli = Callable[..., Any]


@pytest.fixture(autouse=True)
def _beside_the_fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)


def facts(found: Runtime) -> list[tuple[list[str], str, dict[str, Any]]]:
    return [
        (
            sorted(fact.operators),
            fact.outcome,
            {name: sorted(value) for name, value in fact.when.conditions},  # type: ignore[call-overload]
        )
        for fact in found.facts
        # What onnxruntime itself lacks or lets overflow is no news.
        if fact.when.element_types is None or "int64" in fact.when.element_types
    ]


def measured(function: str, cases: Sequence[Case], time_limit: float = 60) -> Runtime:
    """What the command makes of some cases of the suite."""
    with Worker(fake(function), time_limit) as worker:
        probed = probe(worker, cases)
        found, _ = corrected(worker, probed, distil(probed, DAY).runtime, without_bad_forms)
    return found


def one_form_of_each(*operators: str) -> list[Case]:
    """The fakes go wrong at every opset version alike: one of them in all forms tells as much as all."""
    depths: tuple[tuple[int, Depth], ...] = ((13, "plain"), (18, "brief"))
    return [case for operator in operators for opset, depth in depths for case in reduce_cases(operator, opset, depth)]


@pytest.mark.parametrize(
    ("function", "operators", "expected"),
    [
        ("right", ["ReduceProd"], []),
        ("without_keepdims_default", ["ReduceProd"], [(["ReduceProd"], "wrong", {"keepdims": ["unset"]})]),
        ("without_product", ["ReduceProd", "ReduceSum"], [(["ReduceProd"], "absent", {})]),
        ("without_int64", ["ReduceProd"], [(["ReduceProd"], "refused", {"element_types": ["int64"]})]),
    ],
)
def test_a_broken_runtime_becomes_its_facts(function: str, operators: list[str], expected: list[Any]) -> None:
    assert facts(measured(function, one_form_of_each(*operators))) == expected


def test_what_is_broken_is_written_to_the_target_file(cli: Cli, tmp_path: Path) -> None:
    output = tmp_path / "fake.toml"
    ran = cli("probe", "--python", "fakes:without_int64", "--op", "Neg", "-o", output)
    assert ran.status == 0, ran.err
    assert "right" in ran.out
    found = read_runtime(output.read_text(), str(output))
    assert facts(found) == [(["Neg"], "refused", {"element_types": ["int64"]})]
    assert found.prefer in found.reads


def few_with_fed_axes() -> list[Case]:
    """Each of those with fed axes costs a worker."""
    cases = one_form_of_each("ReduceProd")
    fed = [case for case in cases if "axes" in case.inputs]
    return [case for case in cases if case not in fed[1:]]


def test_a_runtime_that_crashes_is_a_finding() -> None:
    found = measured("crashing_on_fed_axes", few_with_fed_axes())
    assert facts(found) == [(["ReduceProd"], "refused", {"axes": ["dynamic"]})]
    assert "ended by SIGABRT: error: the axes are not constant" in found.facts[0].says


def test_a_runtime_that_hangs_is_a_finding() -> None:
    found = measured("hanging_on_fed_axes", few_with_fed_axes(), time_limit=1)
    assert facts(found) == [(["ReduceProd"], "refused", {"axes": ["dynamic"]})]
    assert found.facts[0].says == "ReduceProd (axes dynamic) does not end."


def test_a_command_and_kept_results(cli: Cli, tmp_path: Path) -> None:
    script, results = tmp_path / "runner.py", tmp_path / "kept.jsonl"
    script.write_text(RUNNER.format(here=str(HERE)))
    command = f"{sys.executable} {script} {{model}} {{inputs}} {{outputs}}"
    arguments = ("--command", command, "--op", "Abs", "--runtime-version", "2.1")
    # The suite of one operator is small enough for a process a model only where most of it is known already.
    known = tmp_path / "known.jsonl"
    cli("probe", "--python", "fakes:right", *arguments[2:], "-o", tmp_path / "a.toml", "--results", known)
    lines = [json.loads(line) | {"runtime": "phone"} for line in known.read_text().splitlines()]
    results.write_text("".join(json.dumps(line) + "\n" for line in lines[:-4]))
    ran = cli("probe", *arguments, "-o", tmp_path / "phone.toml", "--results", results)
    assert ran.status == 0, ran.err
    assert len(results.read_text().splitlines()) == len(lines)
    assert "phone 2.1" in ran.out


KNOWN = """
[runtime]
name = "phone"
version = "1.0"
about = "A runtime for tests."
[opsets]
reads = "13-18"
prefer = 17
"""


def test_real_models_add_facts_and_leave_their_smallest_failing_part(cli: Cli, tmp_path: Path) -> None:
    known, output, kept = tmp_path / "known.toml", tmp_path / "phone.toml", tmp_path / "kept"
    known.write_text(KNOWN)
    folder = tmp_path / "models"
    folder.mkdir()
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[2,3] x) => (float[2,3] y)'
    for name, nodes in (("fast", "a = Neg (x) y = HardSwish (a)"), ("slow", "a = Neg (x) y = Elu (a)")):
        onnx.save(parser.parse_model(f"{text} {{ {nodes} }}"), folder / f"{name}.onnx")
    (folder / "broken.onnx").write_bytes(b"no model")
    arguments = ("--known", known, "--keep-failing", kept, "-o", output)
    ran = cli("probe", folder, "--python", "fakes:without_hard_swish", *arguments)
    assert ran.status == 0, ran.err
    assert ran.out.startswith("phone 1.0: 2 models, 1 right before conversion, 2 after it\n")
    assert "broken.onnx: not run" in ran.out
    assert "Facts added\n  HardSwish (element types float) is refused: NotImplementedError: no HardSwish" in ran.out
    (fact,) = read_runtime(output.read_text()).facts
    assert fact.operators == {"HardSwish"}
    assert fact.evidence.measured == "phone 1.0, HardSwish of fast.onnx"
    part = onnx.load(kept / "fast.onnx")
    assert [node.op_type for node in part.graph.node] == ["HardSwish"]
    assert np.load(kept / "fast.npz")["a"].shape == (2, 3)


def test_models_of_one_name_in_two_folders_are_kept_apart(cli: Cli, tmp_path: Path) -> None:
    known, kept = tmp_path / "known.toml", tmp_path / "kept"
    known.write_text(KNOWN)
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[2,3] x) => (float[2,3] y)'
    for name, nodes in (
        ("one", "y = HardSwish (x)"),
        ("two", "a = HardSwish (x) y = Neg (a)"),
        ("three", "y = Elu (x)"),
    ):
        (tmp_path / name).mkdir()
        onnx.save(parser.parse_model(f"{text} {{ {nodes} }}"), tmp_path / name / "model.onnx")
    folders = [tmp_path / name for name in ("one", "two", "three")]
    arguments = ("--known", known, "--keep-failing", kept, "-o", tmp_path / "phone.toml")
    ran = cli("probe", *folders, "--python", "fakes:without_hard_swish", *arguments)
    assert ran.status == 0, ran.err
    assert ran.out.startswith("phone 1.0: 3 models, 1 right before conversion, 3 after it\n")
    assert sorted(path.parent.name for path in kept.rglob("model.onnx")) == ["one", "two"]
    assert sorted(path.parent.name for path in kept.rglob("model.npz")) == ["one", "two"]


def test_what_is_known_is_that_of_the_runtime_at_its_version(cli: Cli, tmp_path: Path) -> None:
    model = parser.parse_model('<ir_version: 8, opset_import: ["": 17]> g (float[3] x) => (float[3] y) { y = Neg (x) }')
    onnx.save(model, tmp_path / "m.onnx")
    output = tmp_path / "t.toml"
    ran = cli("probe", tmp_path / "m.onnx", "--runtime", "onnxruntime", "--runtime-version", "1.16", "-o", output)
    assert ran.status == 0, ran.err
    found = read_runtime(output.read_text())
    assert (found.name, found.version) == ("onnxruntime", "1.16")
    assert found.reads == load_runtime("onnxruntime@1.16").reads


def test_a_runtime_that_is_not_here_names_the_way_to_it(cli: Cli, tmp_path: Path) -> None:
    from importlib.util import find_spec

    if find_spec("tvm") is not None:
        pytest.skip("tvm is installed")
    ran = cli("probe", "--runtime", "tvm", "-o", tmp_path / "tvm.toml")
    assert ran.status == 2
    assert "--interpreter names the Python that has it" in ran.err
