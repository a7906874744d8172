"""Models that skl2onnx and torch.onnx wrote go to every opset version and give the same outputs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import onnx
import pytest
from onnx import ModelProto, checker

import reducelower
from reducelower.model.graph import all_nodes
from reducelower.model.schemas import versions
from reducelower.verification import verify

MODELS = sorted((Path(__file__).parents[1] / "data" / "models").glob("*.onnx"))
TARGETS = (9, 11, 13, 15, 17, 18, 20, 21, 23)


def targets_of(model: ModelProto) -> Iterable[int]:
    """The oldest target of each on which the operators of a model are of the same versions."""
    operators = sorted({node.op_type for node in all_nodes(model) if not node.domain})
    oldest: dict[tuple[int, ...], int] = {}
    for target in TARGETS:
        held = (max((at for at in versions(op_type) if at <= target), default=0) for op_type in operators)
        oldest.setdefault(tuple(held), target)
    return oldest.values()


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_every_opset(path: Path) -> None:
    model = onnx.load(path)
    for target in targets_of(model):
        converted = reducelower.convert_version(model, target)
        checker.check_model(converted, full_check=True)
        verification = verify(model, converted)
        assert verification.ran, (target, str(verification))
        assert verification.equivalent, (target, str(verification))


def test_there_are_models() -> None:
    assert len(MODELS) >= 40
