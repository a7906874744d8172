"""What the judges get wrong, beside numbers that follow from the operators' pages by hand or by numpy.

Each row of `wrong_judges.toml` is one gap of `known_gaps.toml`: the judge gets it wrong, and is not asked about it, or
not for all digits. Once a newer runtime gets it right, its gap can go.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

from tests.table import VOCABULARY
from tools.fuzz.comparing import difference
from tools.fuzz.gaps import facts_of, gap_of, is_single
from tools.fuzz.runtimes import run
from tools.fuzz.versions import measured

TABLE = tomllib.loads(Path(__file__).with_name("wrong_judges.toml").read_text(encoding="utf-8"))
NAMES: dict[str, Any] = {**VOCABULARY, "F": np.float32, "INF": math.inf}
for name, text in TABLE.pop("let").items():
    NAMES[name] = eval(text, NAMES)


@dataclass(frozen=True)
class Wrong:
    """A model that a judge gets wrong, and the values of its outputs; `single`: doubles have the digits of floats."""

    judge: str
    model: onnx.ModelProto
    feeds: Mapping[str, np.ndarray]
    right: list[np.ndarray]
    single: bool


def wrong(row: Mapping[str, Any]) -> Wrong:
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {row["opset"]}]> g {row["model"]}')
    feeds = {name: eval(text, NAMES) for name, text in row.get("given", {}).items()}
    return Wrong(row["judge"], model, feeds, [eval(text, NAMES) for text in row["right"]], row.get("single", False))


@measured
@pytest.mark.parametrize("name", TABLE)
def test_a_judge_is_wrong_where_a_gap_says_so(name: str) -> None:
    case = wrong(TABLE[name])
    onnx.checker.check_model(case.model, full_check=True)
    facts = facts_of(case.model, case.feeds.values())
    found = run(case.judge, case.model, case.feeds).values
    assert found is None or any(difference(one, other) for one, other in zip(case.right, found, strict=True)), found
    assert (gap_of(case.judge, facts.also(found or ())) is None) == case.single
    assert is_single(case.judge, facts) or not case.single
    if case.single:
        assert found is not None
        assert not any(difference(one, other, single=True) for one, other in zip(case.right, found, strict=True))


@measured
@pytest.mark.parametrize("name", TABLE)
def test_the_other_judge_is_right_unless_it_has_a_gap_too_or_does_not_run_it(name: str) -> None:
    case = wrong(TABLE[name])
    other = "reference" if case.judge == "onnxruntime" else "onnxruntime"
    facts = facts_of(case.model, case.feeds.values())
    found = run(other, case.model, case.feeds).values
    if found is not None and gap_of(other, facts) is None and not is_single(other, facts):
        assert not any(difference(one, two) for one, two in zip(case.right, found, strict=True))
