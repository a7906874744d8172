"""Models exported in the test run itself, by whatever exporters are installed."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, checker

import reducelower

TARGETS = (11, 13)


def run(model: ModelProto, feeds: dict[str, np.ndarray]) -> list[Any]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return list(session.run(None, feeds))


def convert_and_compare(model: ModelProto, feeds: dict[str, np.ndarray], expected: list[np.ndarray]) -> None:
    for target in TARGETS:
        converted = reducelower.convert_version(model, target)
        checker.check_model(converted, full_check=True)
        assert max(entry.version for entry in converted.opset_import if not entry.domain) == target
        for result, wanted in zip(run(converted, feeds), expected, strict=True):
            np.testing.assert_allclose(np.asarray(result, np.float64), wanted, rtol=1e-4, atol=1e-5)


def test_a_torch_model_with_norms_and_logsumexp() -> None:
    torch = pytest.importorskip("torch")

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = torch.nn.LayerNorm(8)
            self.linear = torch.nn.Linear(8, 4)

        def forward(self, x: Any) -> Any:
            hidden = torch.nn.functional.gelu(self.linear(self.norm(x)))
            scaled = hidden / (hidden.norm(dim=-1, keepdim=True) + 1)
            return torch.logsumexp(scaled, dim=1), scaled.abs().amax(dim=(1, 2)), torch.softmax(scaled, dim=-1).mean(1)

    torch.manual_seed(0)
    module = Model().eval()
    x = torch.randn(2, 5, 8)
    with torch.no_grad():
        expected = [value.numpy() for value in module(x)]
    program = torch.onnx.export(module, (x,), dynamo=True, opset_version=18)
    buffer = io.BytesIO()
    program.save(buffer)
    model = onnx.load_from_string(buffer.getvalue())
    convert_and_compare(model, {model.graph.input[0].name: x.numpy()}, expected)


def test_scikit_learn_models() -> None:
    skl2onnx = pytest.importorskip("skl2onnx")
    from sklearn.cluster import KMeans
    from sklearn.mixture import GaussianMixture
    from sklearn.naive_bayes import GaussianNB

    data = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
    labels = (data.sum(axis=1) > 0).astype(np.int64)
    for estimator in (GaussianMixture(3, random_state=0), KMeans(3, random_state=0, n_init=1), GaussianNB()):
        estimator.fit(data, labels)
        options = {"zipmap": False} if isinstance(estimator, GaussianNB) else None
        model = skl2onnx.to_onnx(estimator, data[:1], options=options)
        expected = [np.asarray(value, np.float64) for value in run(model, {"X": data})]
        convert_and_compare(model, {"X": data}, expected)
