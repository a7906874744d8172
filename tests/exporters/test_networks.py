"""Networks as people deploy them, exported in the test run, come to older and newer opset versions and stay right."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.exporters import corpus

CASES = (
    ("Llama with a cache", 17),
    ("relative attention", 14),
    ("voice activity", 14),
    ("steps in a list", 14),
    ("centres of boxes", 17),
    ("graph attention", 17),
    ("pillars", 17),
    ("policy", 17),
)


@pytest.mark.parametrize(("name", "opset"), CASES)
def test_a_network_stays_right(name: str, opset: int, tmp_path: Path) -> None:
    (source,) = corpus._tried(corpus._network, name, opset, tmp_path)
    expected = corpus.run(source.model, source.feeds)
    targets = [target for target in (9, 11, 12, 13, 18, 21) if target != opset]
    assert [corpus.outcome(source, target, expected) for target in targets] == [""] * len(targets)
