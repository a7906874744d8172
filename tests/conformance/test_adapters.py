"""Adapters run in environments that have their runtime and little else."""

from __future__ import annotations

import ast
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from reducelower.conformance import worker
from reducelower.conformance.judging import judge
from reducelower.conformance.process import Subject, UnusableError, Worker
from reducelower.conformance.runtimes import RUNTIMES
from tests.conformance.made import reductions

FILES = [Path(worker.__file__), *map(Path, dict.fromkeys(RUNTIMES.values()))]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_only_the_standard_library_and_numpy_are_imported_on_loading(path: Path) -> None:
    body = ast.parse(path.read_text("utf-8")).body
    names = {alias.name for node in body if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in body if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in names} <= {*sys.stdlib_module_names, "numpy"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_nothing_of_reducelower_is_imported_ever(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        assert not [name for name in names if name.partition(".")[0] == "reducelower"]


@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
def test_adapters_give_what_is_right(name: str) -> None:
    if find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    cases = [case for case in reductions("ReduceSum", "ReduceMax") if case.opset in (11, 13) and not case.tag]
    wanted = [case for case in cases if case.features.axes in ("attribute", "initializer", "absent")]
    usual = [case for case in wanted if case.features.element_types in ("float", "double", "int32", "int64")]
    with Worker(Subject.of_runtime(name), 60) as running:
        verdicts = {case.name: judge(case, running.run(case.model, case.inputs)).word for case in usual}
        assert running.version
    assert set(verdicts.values()) == {"right"}, verdicts


@pytest.mark.parametrize("name", RUNTIMES)
def test_a_runtime_that_is_not_installed_says_so(name: str) -> None:
    package = {"mnn": "MNN", "iree": "iree.runtime"}.get(name, name)
    try:
        installed = find_spec(package) is not None
    except ModuleNotFoundError:
        installed = False
    if installed:
        pytest.skip(f"{name} is installed")
    with Worker(Subject.of_runtime(name), 60) as running, pytest.raises(UnusableError, match=f"{name} cannot be used"):
        running.start()
