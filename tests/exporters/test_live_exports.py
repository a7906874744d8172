"""Models exported in the test run itself, by what is installed, and what onnx's own converter makes of them."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, checker, version_converter

import reducelower

EXAMPLES = Path(__file__).parents[2] / "examples"

MEASURED = "1.23"
"""The onnx whose converter the tables below are about; another one may do better."""


def run(model: ModelProto, feeds: dict[str, np.ndarray]) -> list[Any]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return list(session.run(None, feeds))


def assert_right(model: ModelProto, target: int, feeds: dict[str, np.ndarray], expected: list[np.ndarray]) -> None:
    checker.check_model(model, full_check=True)
    assert max(entry.version for entry in model.opset_import if not entry.domain) == target
    for result, wanted in zip(run(model, feeds), expected, strict=True):
        np.testing.assert_allclose(np.asarray(result, np.float64).reshape(wanted.shape), wanted, rtol=1e-4, atol=1e-5)


def official(model: ModelProto, target: int) -> str:
    """What onnx's own converter says, or what the checker says of its result; empty where neither has anything to."""
    try:
        checker.check_model(version_converter.convert_version(model, target), full_check=True)
    except (RuntimeError, checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        return str(error)
    return ""


def assert_official(model: ModelProto, target: int, said: str) -> None:
    if onnx.__version__.startswith(f"{MEASURED}."):
        found = official(model, target)
        assert said in found if said else not found, found


# PyTorch, exported at 18: LayerNormalization, Gelu's parts, ReduceL2, ReduceLogSumExp, ReduceMax, Softmax, ReduceMean.

TORCH = {
    11: "No Previous Version of LayerNormalization exists",
    13: "No Previous Version of LayerNormalization exists",
    17: "Unrecognized attribute: noop_with_empty_axes",  # it writes a model, and the model is not valid
}


@pytest.mark.parametrize("target", TORCH)
def test_a_torch_model_with_norms_and_logsumexp(target: int) -> None:
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
    model = torch.onnx.export(module, (x,), dynamo=True, opset_version=18).model_proto
    assert {"LayerNormalization", "ReduceL2", "ReduceLogSumExp"} <= {node.op_type for node in model.graph.node}
    converted = reducelower.convert_version(model, target)
    assert_right(converted, target, {model.graph.input[0].name: x.numpy()}, expected)
    assert reducelower.verify(model, converted).equivalent
    assert_official(model, target, TORCH[target])


def test_the_example_for_torch(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    example = runpy.run_path(str(EXAMPLES / "pytorch.py"))
    example["main"](str(tmp_path / "model.onnx"))
    written = onnx.load(tmp_path / "model.onnx")
    checker.check_model(written, full_check=True)
    assert [entry.version for entry in written.opset_import if not entry.domain] == [13]


# scikit-learn, exported at 18 and at 13: down, where onnx has no adapter, and up, where it has.

LEARNED = ["GaussianMixture", "KMeans", "GaussianNB", "BernoulliNB", "MultinomialNB", "ComplementNB"]
JOURNEYS = [
    (18, 13, "No Adapter From Version"),
    (18, 11, "No Adapter From Version"),
    (13, 11, "No Adapter "),
    (13, 18, ""),
    (13, 21, ""),
]


def estimator(name: str) -> Any:
    from sklearn import cluster, mixture, naive_bayes

    if name == "GaussianMixture":
        return mixture.GaussianMixture(3, random_state=0)
    return cluster.KMeans(3, random_state=0, n_init=1) if name == "KMeans" else getattr(naive_bayes, name)()


@pytest.mark.parametrize(("source", "target", "said"), JOURNEYS)
@pytest.mark.parametrize("name", LEARNED)
def test_scikit_learn_models(name: str, source: int, target: int, said: str) -> None:
    skl2onnx = pytest.importorskip("skl2onnx")
    data = np.abs(np.random.default_rng(0).normal(size=(60, 4))).astype(np.float32)
    labels = (data.sum(axis=1) > 3).astype(np.int64)
    learned = estimator(name).fit(data, labels)
    options = {"zipmap": False} if name.endswith("NB") else None
    model = skl2onnx.to_onnx(learned, data[:1], options=options, target_opset=source)
    assert max(node.op_type.startswith("Reduce") for node in model.graph.node)
    expected = [learned.predict(data)]
    if name == "KMeans":
        expected.append(learned.transform(data))
    else:
        expected.append(learned.predict_proba(data))
    feeds = {"X": data}
    assert_right(model, source, feeds, expected)  # the exporter's part
    assert_right(reducelower.convert_version(model, target), target, feeds, expected)
    assert_official(model, target, said)
