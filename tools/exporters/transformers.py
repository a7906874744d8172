"""Transformers with random weights, and how torch exports them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto

from tools.sessions import unoptimized

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

    def forward(self, data: Any) -> Any:
        mask = {} if self.name == "pixel_values" else {"attention_mask": torch.ones_like(data)}
        result = self.module(**{self.name: data}, **mask)  # without a mask, tracing reaches torch.diff
        pooled = getattr(result, "pooler_output", None)
        return result.last_hidden_state if pooled is None else (result.last_hidden_state, pooled)


def made(name: str) -> tuple[Whole, Any]:
    """A transformer with random weights, and an input for it."""
    family, settings = MODELS[name]
    config = getattr(transformers, f"{family}Config")(**settings)
    config.use_cache = False
    torch.manual_seed(0)
    has_images = name in WITH_IMAGES
    model = transformers.AutoModel.from_config(config, attn_implementation="eager")
    with torch.no_grad():
        for parameter in model.parameters():  # equal norms would be exported as one
            parameter.add_(0.05 * torch.randn_like(parameter))
    module = Whole(model.eval(), "pixel_values" if has_images else "input_ids")
    return module, torch.randn(1, 3, 32, 32) if has_images else torch.randint(0, 90, (2, 7))


def exported(name: str, folder: Path, *, opset: int, dynamo: bool) -> tuple[ModelProto, dict[str, np.ndarray]]:
    """A transformer as torch exports it, and an input for it."""
    module, data = made(name)
    path = folder / "model.onnx"
    axes = {} if name in WITH_IMAGES or dynamo else {"dynamic_axes": {"x": {0: "batch", 1: "length"}}}
    storage = {"external_data": False, "verbose": False} if dynamo else {"input_names": ["x"]}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(module, (data,), path, opset_version=opset, dynamo=dynamo, **axes, **storage)
        model = onnx.load(path)
        feeds = {model.graph.input[0].name: data.numpy()}
        run(model, feeds)
    except Exception as error:
        pytest.skip(f"this torch does not export it: {error!s:.80}")
    return model, feeds


def run(model: ModelProto, feeds: Mapping[str, np.ndarray]) -> list[Any]:
    """The outputs in onnxruntime without optimizations."""
    return list(unoptimized(model).run(None, dict(feeds)))
