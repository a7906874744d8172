"""Count the downgrades that each tool can do: `python benchmarks/coverage.py` prints the table in the README.

Every model in tests/data/models, as PyTorch and scikit-learn exported it, is converted to several older opset versions.
A result counts if it imports that opset version, passes the ONNX checker and loads in onnxruntime; sources that
onnxruntime does not load are not counted at all. Tools that are not installed are left out:
`pip install onnxscript onnxsim onnxifier` installs all of them.
"""

from __future__ import annotations

import contextlib
import io
from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import onnx
import onnxruntime

import reducelower

MODELS = Path(__file__).parents[1] / "tests" / "data" / "models"
TARGETS = (17, 15, 13, 11)


def by_onnx(model: onnx.ModelProto, target: int) -> onnx.ModelProto:
    """onnx's own converter."""
    return onnx.version_converter.convert_version(model, target)


def by_onnxscript(model: onnx.ModelProto, target: int) -> onnx.ModelProto:
    """The converter of onnxscript, which falls back to onnx's."""
    import onnx_ir
    from onnxscript import version_converter

    made = onnx_ir.from_proto(model)
    version_converter.convert_version(made, target, fallback=True)
    return onnx_ir.to_proto(made)


def by_onnxsim(model: onnx.ModelProto, target: int) -> onnx.ModelProto:
    """The converter of onnxsim, without simplification."""
    import onnxsim

    with contextlib.redirect_stdout(io.StringIO()):
        made, _ = onnxsim.simplify(
            model, target_opset_version=target, perform_optimization=False, skip_constant_folding=True
        )
    return made


def by_onnxifier(model: onnx.ModelProto, target: int) -> onnx.ModelProto:
    """The converter of onnxifier, without its other passes."""
    import onnxifier

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        made: onnx.ModelProto = onnxifier.downgrade_op_version(onnxifier.OnnxGraph(model), target).model
    return made


TOOLS: dict[str, tuple[str, Callable[[onnx.ModelProto, int], onnx.ModelProto]]] = {
    "reducelower": ("reducelower", reducelower.convert_version),
    "onnxifier": ("onnxifier", by_onnxifier),
    "onnx.version_converter": ("onnx", by_onnx),
    "onnxsim --target-opset": ("onnxsim", by_onnxsim),
    "onnxscript.version_converter": ("onnxscript", by_onnxscript),
}
"""The converters by their names in the table, each with its package."""


def is_loaded(model: onnx.ModelProto) -> bool:
    """Whether onnxruntime loads a model without optimizations."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception:  # onnxruntime has an exception class per status code
        return False
    return True


def outcome(tool: Callable[[onnx.ModelProto, int], onnx.ModelProto], model: onnx.ModelProto, target: int) -> str:
    """The outcome for one model: converted, refused, or not a valid model of that opset version."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    try:
        result = tool(copy, target)
    except Exception:  # each tool raises its own kinds
        return "refused"
    if next(entry.version for entry in result.opset_import if not entry.domain) != target:
        return "left as it was"
    try:
        onnx.checker.check_model(result, full_check=True)
    except Exception:
        return "invalid"
    return "converted" if is_loaded(result) else "invalid"


def main() -> None:
    """Print the table."""
    tools = {name: tool for name, (package, tool) in TOOLS.items() if find_spec(package)}
    counts: dict[str, Counter[str]] = {name: Counter() for name in tools}
    tried = 0
    for path in sorted(MODELS.glob("*.onnx")):
        model = onnx.load(path)
        opset = next(entry.version for entry in model.opset_import if not entry.domain)
        if not is_loaded(model):
            continue
        for target in TARGETS:
            if target < opset:
                tried += 1
                for name, tool in tools.items():
                    counts[name][outcome(tool, model, target)] += 1
    kinds = ("converted", "refused", "left as it was", "invalid")
    print(f"| of {tried} downgrades | {' | '.join(kinds)} |")
    print("|---" * (len(kinds) + 1) + "|")
    for name, count in counts.items():
        print(f"| {name} | {' | '.join(str(count[kind]) for kind in kinds)} |")


if __name__ == "__main__":
    main()
