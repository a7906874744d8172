"""A runtime that is wrong, for tests of what is told of runtimes that diverge."""

from __future__ import annotations

import pytest
from onnx import ModelProto

from reducelower.verification import RUNTIMES
from reducelower.verification.running.runtimes import OnnxRuntime, Session
from reducelower.verification.running.source import Source


class WrongRuntime:
    """onnxruntime, but every ReduceMax is a ReduceMin, and every Elu has an alpha that is off by some digits."""

    name = "wrong"

    def load(self, source: Source) -> Session:
        changed = ModelProto.FromString(source.proto.SerializeToString())
        for node in changed.graph.node:
            node.op_type = {"ReduceMax": "ReduceMin"}.get(node.op_type, node.op_type)
            if node.op_type == "LeakyRelu":
                node.attribute[0].f *= 1 + 1e-5
        return OnnxRuntime().load(Source(changed))


@pytest.fixture
def wrong(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(RUNTIMES, "wrong", WrongRuntime)  # type: ignore[arg-type]
    return "wrong"
