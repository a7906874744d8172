"""Transformers with random weights, exported in the test run, come to every opset and stay right."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, checker

import reducelower
from reducelower.numerics.tolerance import Tolerance
from reducelower.recompose import raise_with_plan

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
    "DistilBert": ("DistilBert", {"dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 24, "vocab_size": 100}),
    "OPT": ("OPT", {**TEXT, "ffn_dim": 24, "word_embed_proj_dim": 16}),
    "Mistral": ("Mistral", {**TEXT, "num_key_value_heads": 1}),
    "Gemma": ("Gemma", {**TEXT, "num_key_value_heads": 1, "head_dim": 8}),
    "Qwen3": ("Qwen3", {**TEXT, "num_key_value_heads": 1, "head_dim": 8}),
    "Cohere": ("Cohere", {**TEXT, "num_key_value_heads": 1}),
    "Phi": ("Phi", TEXT),
    "Llama": ("Llama", {**TEXT, "use_cache": False}),
    "GPTNeoX": ("GPTNeoX", {**TEXT, "use_cache": False}),
    "Qwen2": ("Qwen2", {**TEXT, "num_key_value_heads": 1, "use_cache": False}),
    "Bloom": ("Bloom", {"hidden_size": 16, "n_layer": 1, "n_head": 2, "vocab_size": 100, "use_cache": False}),
    "GPT2": ("GPT2", {"n_embd": 16, "n_layer": 1, "n_head": 2, "vocab_size": 100, "use_cache": False}),
    "ViT": ("ViT", IMAGE),
    "DeiT": ("DeiT", IMAGE),
    "Dinov2": ("Dinov2", {key: value for key, value in IMAGE.items() if key != "intermediate_size"}),
    "Bit": ("Bit", {"hidden_sizes": [8, 8, 16, 16], "depths": [1, 1, 1, 1], "embedding_size": 8, "num_groups": 4}),
    "ConvNext": ("ConvNext", {"hidden_sizes": [8, 8, 8, 8], "depths": [1, 1, 1, 1]}),
    "Segformer": ("Segformer", {"hidden_sizes": [8, 8, 8, 8], "depths": [1, 1, 1, 1]}),
}
WITH_IMAGES = {"Bit", "ViT", "DeiT", "Dinov2", "ConvNext", "Segformer"}


class Whole(torch.nn.Module):  # type: ignore[misc]  # torch is not installed where types are checked
    """A transformer as a function of one tensor."""

    def __init__(self, module: Any, name: str) -> None:
        super().__init__()
        self.module = module
        self.name = name

    def forward(self, given: Any) -> Any:
        given_with_it = {} if self.name == "pixel_values" else {"attention_mask": torch.ones_like(given)}
        found = self.module(**{self.name: given}, **given_with_it)  # without a mask tracing meets torch.diff
        pooled = getattr(found, "pooler_output", None)
        return found.last_hidden_state if pooled is None else (found.last_hidden_state, pooled)


def made(name: str) -> tuple[Whole, Any]:
    """A transformer with random weights, and an input for it."""
    family, settings = MODELS[name]
    config = getattr(transformers, f"{family}Config")(**settings)
    config.use_cache = False
    torch.manual_seed(0)
    has_images = name in WITH_IMAGES
    model = transformers.AutoModel.from_config(config, attn_implementation="eager")
    with torch.no_grad():
        for parameter in model.parameters():  # norms that are alike would be exported as one
            parameter.add_(0.05 * torch.randn_like(parameter))
    module = Whole(model.eval(), "pixel_values" if has_images else "input_ids")
    return module, torch.randn(1, 3, 32, 32) if has_images else torch.randint(0, 90, (2, 7))


def exported(name: str, folder: Path, *, opset: int, dynamo: bool) -> tuple[ModelProto, dict[str, np.ndarray]]:
    module, given = made(name)
    path = folder / "model.onnx"
    axes = {} if name in WITH_IMAGES or dynamo else {"dynamic_axes": {"x": {0: "batch", 1: "length"}}}
    storage = {"external_data": False, "verbose": False} if dynamo else {"input_names": ["x"]}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(module, (given,), path, opset_version=opset, dynamo=dynamo, **axes, **storage)
        model = onnx.load(path)
        feeds = {model.graph.input[0].name: given.numpy()}
        run(model, feeds)
    except Exception as error:
        pytest.skip(f"this torch does not export it: {error!s:.80}")
    return model, feeds


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


def computed(name: str) -> dict[str, int]:
    """How often a transformer computes what there is an operator for, by what its modules are called."""
    found: Counter[str] = Counter()

    def count(module: Any, *_: Any) -> None:
        kind = type(module).__name__
        if kind.endswith("RMSNorm"):
            found["RMSNormalization"] += 1
        elif "LayerNorm" in kind:
            found["LayerNormalization"] += 1
        elif "GroupNorm" in kind:
            found["GroupNormalization"] += 1
        elif "GELU" in kind or "Gelu" in kind:
            found["Gelu"] += 1

    module, given = made(name)
    for part in module.modules():
        part.register_forward_hook(count)
    with torch.no_grad():
        module(given)
    return dict(found)


@pytest.mark.parametrize(("opset", "dynamo"), [(14, False), (18, True)], ids=["traced", "dynamo"])
@pytest.mark.parametrize("name", MODELS)
def test_what_a_transformer_computes_is_put_together(name: str, opset: int, dynamo: bool, tmp_path: Path) -> None:
    model, feeds = exported(name, tmp_path, opset=opset, dynamo=dynamo)
    converted = reducelower.convert_version(model, 23)
    raised = raise_with_plan(converted)
    checker.check_model(raised.model, full_check=True)
    wanted = computed(name)
    kinds = Counter(node.op_type for node in raised.model.graph.node)
    assert {kind: kinds[kind] for kind in wanted} == wanted, raised.plan.notes
    # A value near zero that layers with random weights add up from large ones may be off by the rounding of these.
    near = {"float": Tolerance(64, 1e-5, 1e-5)}
    verdict = reducelower.verify(converted, raised.model, plan=raised.plan, tolerances=near).verdict
    # onnxruntime's InstanceNormalization loses digits where the values of a group hardly differ.
    assert verdict == "equivalent" or (name, verdict) == ("Bit", "not shown")
    again = reducelower.expand(raised.model, ops=sorted(wanted.keys() - {"Gelu"}), rules="stable")
    for found in (raised.model, again):
        np.testing.assert_allclose(run(found, feeds)[0], run(model, feeds)[0], rtol=1e-4, atol=1e-5)
