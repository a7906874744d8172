"""The versions of the judges that `known_gaps.toml` and the numbers of cases were measured with."""

from __future__ import annotations

import onnx
import onnxruntime
import pytest

__all__ = ["measured"]

_MEASURED = {"onnx": "1.23", "onnxruntime": "1.32"}
_INSTALLED = {"onnx": onnx.__version__, "onnxruntime": onnxruntime.__version__}

measured = pytest.mark.skipif(
    any(not _INSTALLED[name].startswith(f"{version}.") for name, version in _MEASURED.items()),
    reason=f"what runtimes get wrong was measured with {_MEASURED}, and {_INSTALLED} are installed",
)
