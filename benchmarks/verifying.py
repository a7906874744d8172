"""Compare the CPU time of verifying a conversion with that of loading both models and running them.

    python benchmarks/verifying.py [--opset 13] [FOLDER ...]

Every model of the folders is converted and verified, with the inputs in an ``.npz`` file of its name if there is one.
It is verified again as in a later run, with the regions that held in the cache. The comparison is the time for loading
both models in onnxruntime and running them on the same sets of inputs. Loading the result with optimizations, as users
do by default, is counted separately: verification does it to find faults of the optimizer.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import ModelProto

import reducelower
from reducelower.api import legalize
from reducelower.verification.checking.cache import forget
from reducelower.verification.running import evaluator  # noqa: F401  # to import it takes 60 ms, once in a process
from reducelower.verification.running.runtimes import OnnxRuntime
from reducelower.verification.running.source import CannotRunError, Source
from reducelower.verification.whole.runs import SourceRuns

_MODELS = Path(__file__).parents[1] / "tests" / "data" / "models"
_RUNTIME = "onnxruntime"


def running(before: ModelProto, after: ModelProto, inputs: dict[str, Any]) -> float:
    """CPU seconds for loading and running both models.

    Raises:
        CannotRunError: onnxruntime does not load one of them, or runs it on no inputs.
    """
    cases = SourceRuns(Source(before), inputs).run((_RUNTIME,), []).cases
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    started = time.process_time()
    for model in (before, after):
        session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        accepted = {value.name for value in model.graph.input}
        for feeds in cases:
            session.run(None, {name: value for name, value in feeds.items() if name in accepted})
    return time.process_time() - started


def by_default(model: ModelProto) -> float:
    """CPU seconds for loading a model with default options."""
    source = Source.of(model)
    started = time.process_time()
    OnnxRuntime(optimizes=True).load(source)
    return time.process_time() - started


def main() -> None:
    """Print a line per model and the sums."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, default=[_MODELS])
    parser.add_argument("--opset", type=int, default=13)
    options = parser.parse_args()
    sums = [0.0, 0.0, 0.0]
    for path in sorted(path for folder in options.folders for path in folder.glob("*.onnx")):
        before, saved = onnx.load(path), path.with_suffix(".npz")
        arrays = dict(np.load(saved, allow_pickle=True)) if saved.exists() else {}
        inputs = {value.name: arrays[value.name] for value in before.graph.input if value.name in arrays}
        try:
            made = legalize(before, reducelower.Target(options.opset))
            beside = running(before, made.model, inputs)
        except (reducelower.ConversionError, CannotRunError) as error:
            print(f"{path.name}: {' '.join(str(error).split())[:100]}")
            continue
        forget()  # like a process of its own
        apart = by_default(made.model)
        verifying = []
        for _ in range(2):
            started = time.process_time()
            verification = reducelower.verify(before, made.model, plan=made.plan, inputs=inputs)
            verifying.append(time.process_time() - started - apart)
        sums = [one + other for one, other in zip(sums, (*verifying, beside), strict=True)]
        verdict = f"{verification.verdict}, {len(verification.sites)} distinct regions, {apart * 1e3:.0f} ms apart"
        print(f"{path.name}: {verdict}, {_times(*verifying, beside)}", flush=True)
    print(f"in all {_times(*sums)}")


def _times(first: float, again: float, beside: float) -> str:
    times = f"{first * 1e3:.0f} ms, {again * 1e3:.0f} ms once more, {beside * 1e3:.0f} ms beside"
    return f"{times}: {first / beside:.2f}x and {again / beside:.2f}x"


if __name__ == "__main__":
    main()
