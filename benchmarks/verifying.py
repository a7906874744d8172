"""What verifying a conversion costs beside loading both models and running them, in processor time.

    python benchmarks/verifying.py [--opset 13] [FOLDER ...]

Every model of the folders is converted and verified, with the inputs in an ``.npz`` file of its name where there is
one, and once more, as by a later run that finds in the cache what held. Beside it stands what it takes to load both in
onnxruntime and to run them on the same sets of inputs. The load of the result with optimizations on, as users load it
by default, is counted apart: it is made to tell of optimizers that stumble.
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
from reducelower.verification.running.clock import Clock
from reducelower.verification.running.runtimes import OnnxRuntime
from reducelower.verification.running.source import CannotRunError, Source
from reducelower.verification.whole.runs import Request, run_source

_MODELS = Path(__file__).parents[1] / "tests" / "data" / "models"
_RUNTIME = "onnxruntime"


def running(before: ModelProto, after: ModelProto, inputs: dict[str, Any]) -> float:
    """Seconds of processor time that loading and running both takes.

    Raises:
        CannotRunError: onnxruntime does not take one of them, or takes it on no inputs.
    """
    cases = run_source(Source(before), (_RUNTIME,), Request(inputs, 0, {}), Clock(None), []).cases
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
    """Seconds of processor time that loading a model as users do takes."""
    source = Source(model).light()
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
        before, given = onnx.load(path), path.with_suffix(".npz")
        held = dict(np.load(given, allow_pickle=True)) if given.exists() else {}
        inputs = {value.name: held[value.name] for value in before.graph.input if value.name in held}
        try:
            made = legalize(before, reducelower.Target(options.opset))
            beside = running(before, made.model, inputs)
        except (reducelower.ConversionError, CannotRunError) as error:
            print(f"{path.name}: {' '.join(str(error).split())[:100]}")
            continue
        forget()  # as in a process of its own
        apart = by_default(made.model)
        taken = []
        for _ in range(2):
            started = time.process_time()
            found = reducelower.verify(before, made.model, plan=made.plan, inputs=inputs)
            taken.append(time.process_time() - started - apart)
        sums = [one + other for one, other in zip(sums, (*taken, beside), strict=True)]
        said = f"{found.verdict}, {len(found.sites)} distinct regions, {apart * 1e3:.0f} ms apart"
        print(f"{path.name}: {said}, {_told(*taken, beside)}", flush=True)
    print(f"in all {_told(*sums)}")


def _told(first: float, again: float, beside: float) -> str:
    times = f"{first * 1e3:.0f} ms, {again * 1e3:.0f} ms once more, {beside * 1e3:.0f} ms beside"
    return f"{times}: {first / beside:.2f}x and {again / beside:.2f}x"


if __name__ == "__main__":
    main()
