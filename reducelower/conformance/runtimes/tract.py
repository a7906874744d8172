"""tract, Sonos's runtime in Rust, through its Python binding."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any


def version() -> str:
    """The version installed."""
    import tract

    return str(tract.version())


def run(model: bytes, inputs: dict[str, Any]) -> list[Any]:
    """Load, optimize and run a model."""
    import numpy as np
    import tract

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "model.onnx")
        file.write_bytes(model)
        loaded = tract.onnx().load(str(file))
    results = loaded.into_model().into_runnable().run(list(inputs.values()))
    return [np.array(_plain(value).to_numpy()) for value in results]


def _plain(value: Any) -> Any:
    """A tensor in a type that the binding can return: 64-bit integers may be dimensions, which it cannot."""
    import tract

    try:
        value.datum_type()
    except tract.TractError:
        return value.convert_to(tract.DatumType.I64)
    return value
