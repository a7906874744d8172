"""`help()` of what is public says what to pass, what comes back and what is raised, with an example that runs."""

from __future__ import annotations

import doctest
import inspect
import re
from pathlib import Path

import pytest

import reducelower

FUNCTIONS = [name for name in reducelower.__all__ if inspect.isfunction(getattr(reducelower, name))]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_help_says_everything(name: str) -> None:
    function = getattr(reducelower, name)
    text = inspect.getdoc(function) or ""
    for heading in ("Args:", "Returns:", "Raises:", "Example:"):
        assert f"\n{heading}\n" in text, heading
    arguments = text.partition("\nArgs:\n")[2].partition("\n\n")[0]
    for parameter in inspect.signature(function).parameters:
        assert re.search(rf"\b{parameter}\b[\w, ]*:", arguments), parameter


@pytest.mark.parametrize("name", FUNCTIONS)
def test_examples_run_and_give_what_they_show(name: str) -> None:
    examples = doctest.DocTestFinder(recurse=False).find(getattr(reducelower, name), name, globs={})
    assert sum(len(item.examples) for item in examples) >= 3
    for item in examples:
        failed = doctest.DocTestRunner().run(item)
        assert failed.failed == 0


def results(models: Path) -> tuple[reducelower.Plan, reducelower.Verification]:
    import onnx

    model = onnx.load(models / "skl_gmm_20.onnx")
    expanded = reducelower.legalize(model, reducelower.Target(without=frozenset({"ReduceLogSumExp"})), rules="spec")
    return expanded.plan, reducelower.verify(model, expanded.model, plan=expanded.plan)


def test_results_are_short_in_a_shell_and_readable_when_printed(models: Path) -> None:
    plan, found = results(models)
    assert repr(plan) == "Plan(opset 20, IR version 9: 1 node rewritten, 12 unchanged)"
    assert str(plan).splitlines()[1] == "  1  ReduceLogSumExp  by spec/ReduceLogSumExp"
    assert repr(found).startswith("Verification(equivalent, infinite for large values at 1 node: 2 outputs on ")
    (site,) = found.sites
    assert repr(site).startswith("SiteVerification(ReduceLogSumExp 'Re_ReduceLogSumExp': loses range on ")
    assert all("\n" not in repr(item) and len(repr(item)) < 300 for item in (plan, found))
