"""A case as text: the model in ONNX text and as bytes, its inputs as numpy expressions."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from onnx import printer

from tools.fuzz.case import Case

__all__ = ["shown"]


def shown(case: Case) -> str:
    """The case as text. ONNX text leaves out some of a model, so its bytes follow in base 64."""
    encoded = base64.b64encode(case.model.SerializeToString()).decode()
    values = [f"{name} = {_value(value)}" for name, value in case.feeds.items()]
    return "\n".join([case.name, printer.to_text(case.model), *values, f"# the model's bytes: {encoded}"])


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    array = np.asarray(value)
    shape = "" if array.ndim == 1 else f".reshape({array.shape})"
    return f"np.array({array.ravel().tolist()}, dtype={str(array.dtype)!r}){shape}"
