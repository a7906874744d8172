"""Models that skl2onnx and torch.onnx wrote go to every opset version and give the same outputs."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import checker

import reducelower
from reducelower.verification import verify

MODELS = sorted((Path(__file__).parents[1] / "data" / "models").glob("*.onnx"))
TARGETS = (9, 11, 13, 15, 17, 18, 20, 21, 23)


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_every_opset(path: Path) -> None:
    model = onnx.load(path)
    for target in TARGETS:
        converted = reducelower.convert_version(model, target)
        checker.check_model(converted, full_check=True)
        verification = verify(model, converted)
        assert verification.ran, (target, str(verification))
        assert verification.equivalent, (target, str(verification))


def test_there_are_models() -> None:
    assert len(MODELS) >= 40
