"""Transformers with random weights, exported in the test run, come to every opset and stay right."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, checker

import reducelower

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

TEXT: Mapping[str, Any] = {
    "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 24, "vocab_size": 100,
    "max_position_embeddings": 64,
}  # fmt: skip
IMAGE: Mapping[str, Any] = {
    "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 24, "image_size": 32,
    "patch_size": 8,
}  # fmt: skip

MODELS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "Bert": ("Bert", TEXT),
    "Roberta": ("Roberta", TEXT),
    "Electra": ("Electra", TEXT),
    "XLMRoberta": ("XLMRoberta", TEXT),
    "Ernie": ("Ernie", TEXT),
    "MPNet": ("MPNet", TEXT),
    "Albert": ("Albert", {**TEXT, "embedding_size": 8}),
    "DebertaV2": ("DebertaV2", {**TEXT, "relative_attention": True, "pos_att_type": ["c2p", "p2c"]}),
    "Llama": ("Llama", {**TEXT, "use_cache": False}),
    "GPTNeoX": ("GPTNeoX", {**TEXT, "use_cache": False}),
    "Qwen2": ("Qwen2", {**TEXT, "num_key_value_heads": 1, "use_cache": False}),
    "Bloom": ("Bloom", {"hidden_size": 16, "n_layer": 1, "n_head": 2, "vocab_size": 100, "use_cache": False}),
    "GPT2": ("GPT2", {"n_embd": 16, "n_layer": 1, "n_head": 2, "vocab_size": 100, "use_cache": False}),
    "ViT": ("ViT", IMAGE),
    "DeiT": ("DeiT", IMAGE),
    "Dinov2": ("Dinov2", {key: value for key, value in IMAGE.items() if key != "intermediate_size"}),
    "ConvNext": ("ConvNext", {"hidden_sizes": [8, 8, 8, 8], "depths": [1, 1, 1, 1]}),
    "Segformer": ("Segformer", {"hidden_sizes": [8, 8, 8, 8], "depths": [1, 1, 1, 1]}),
}
WITH_IMAGES = {"ViT", "DeiT", "Dinov2", "ConvNext", "Segformer"}


class Whole(torch.nn.Module):  # type: ignore[misc]  # torch is not installed where types are checked
    """A transformer as a function of one tensor."""

    def __init__(self, module: Any, name: str) -> None:
        super().__init__()
        self.module = module
        self.name = name

    def forward(self, given: Any) -> Any:
        return self.module(**{self.name: given}).last_hidden_state


def exported(name: str, folder: Path, *, opset: int, dynamo: bool) -> tuple[ModelProto, dict[str, np.ndarray]]:
    family, settings = MODELS[name]
    config = getattr(transformers, f"{family}Config")(**settings)
    config.use_cache = False
    torch.manual_seed(0)
    has_images = name in WITH_IMAGES
    model = transformers.AutoModel.from_config(config, attn_implementation="eager")
    module = Whole(model.eval(), "pixel_values" if has_images else "input_ids")
    given = torch.randn(1, 3, 32, 32) if has_images else torch.randint(0, 90, (2, 7))
    path = folder / "model.onnx"
    axes = {} if has_images or dynamo else {"dynamic_axes": {"x": {0: "batch", 1: "length"}}}
    storage = {"external_data": False, "verbose": False} if dynamo else {"input_names": ["x"]}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(module, (given,), path, opset_version=opset, dynamo=dynamo, **axes, **storage)
    except Exception as error:
        pytest.skip(f"this torch does not export it: {error!s:.80}")
    model = onnx.load(path)
    return model, {model.graph.input[0].name: given.numpy()}


def run(model: ModelProto, feeds: Mapping[str, np.ndarray]) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, dict(feeds)))


@pytest.mark.parametrize(("opset", "dynamo"), [(14, False), (18, True)], ids=["traced", "dynamo"])
@pytest.mark.parametrize("name", MODELS)
def test_a_transformer_comes_to_every_opset(name: str, opset: int, dynamo: bool, tmp_path: Path) -> None:
    model, feeds = exported(name, tmp_path, opset=opset, dynamo=dynamo)
    expected = run(model, feeds)
    for target in (9, 11, 13, 17, 21):
        converted = reducelower.convert_version(model, target)
        checker.check_model(converted, full_check=True)
        for found, wanted in zip(run(converted, feeds), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5, err_msg=f"opset {target}")


def test_a_fused_model_comes_to_every_opset(tmp_path: Path) -> None:
    """As onnxruntime's optimizer writes it: operators of its own, LayerNormalization at opset 14."""
    model, feeds = exported("Bert", tmp_path, opset=14, dynamo=False)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(tmp_path / "fused.onnx")
    onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    fused = onnx.load(tmp_path / "fused.onnx")
    assert any(node.op_type == "LayerNormalization" for node in fused.graph.node)
    assert any(node.domain == "com.microsoft" for node in fused.graph.node)
    expected = run(fused, feeds)
    for target in (9, 11, 13, 17, 21):
        converted = reducelower.convert_version(fused, target)
        checker.check_model(converted, full_check=True)
        np.testing.assert_allclose(run(converted, feeds)[0], expected[0], rtol=1e-4, atol=1e-5)
