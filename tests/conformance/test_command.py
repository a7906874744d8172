"""`reducelower probe` from end to end."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from reducelower.conformance.case import Case
from reducelower.conformance.distilling import distil
from reducelower.conformance.mending import corrected
from reducelower.conformance.process import Worker
from reducelower.conformance.reduce_cases import Depth, reduce_cases
from reducelower.conformance.running import probe
from reducelower.runtimes import Runtime, read_runtime
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
        found, _ = corrected(worker, probed, distil(probed, DAY).runtime)
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


def test_a_runtime_that_is_not_here_names_the_way_to_it(cli: Cli, tmp_path: Path) -> None:
    from importlib.util import find_spec

    if find_spec("tvm") is not None:
        pytest.skip("tvm is installed")
    ran = cli("probe", "--runtime", "tvm", "-o", tmp_path / "tvm.toml")
    assert ran.status == 2
    assert "--interpreter names the Python that has it" in ran.err
