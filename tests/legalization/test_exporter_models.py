"""Models that skl2onnx and torch.onnx wrote go to every opset version: they give the same outputs, as do bytes and a
second conversion, and what differs is what rewrites say.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import onnx
import pytest
from onnx import ModelProto, checker

import reducelower
from reducelower import Target
from reducelower.api import Legalized
from reducelower.model.graph import all_nodes
from reducelower.model.schemas import versions
from reducelower.types import Inference
from reducelower.verification import verify
from reducelower.verification.regions.align import align

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
        made = reducelower.legalize(model, Target(target))
        checker.check_model(made.model, full_check=True)
        assert reducelower.convert_version(made.model, target) == made.model
        data = reducelower.convert_version(path.read_bytes(), target)
        assert ModelProto.FromString(data) == made.model
        verification = verify(model, made.model)
        assert verification.ran, (target, str(verification))
        assert verification.equivalent, (target, str(verification))
        assert is_said_by_rewrites(model, made)


def is_said_by_rewrites(model: ModelProto, made: Legalized) -> bool:
    """Whether what differs is what the recorded rewrites say, and nothing else."""
    inferences = Inference(model), Inference(made.model)
    aligned = align(model, made.model, made.plan, inferences=inferences)
    return all(claim.entry is not None for claim in aligned.claims)


def test_there_are_models() -> None:
    assert len(MODELS) >= 40
