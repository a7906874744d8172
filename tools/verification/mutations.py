"""Plant faults in converted models and count those that `verify` finds: `python -m tools.verification.mutations`.

With ``--cases`` the models are onnx's own node cases, where nothing hides a fault.
"""

from __future__ import annotations

import argparse
import functools
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, helper

from reducelower import convert_version
from reducelower.errors import ConversionError
from reducelower.verification import verify
from tests.models import model
from tools.fuzz.comparing import difference as unlike
from tools.node_cases import cases
from tools.sessions import unoptimized

from .faults import FAULTS, plant

__all__ = ["Mutant", "mutants"]

FOLDER = Path(__file__).parents[2] / "tests" / "data" / "models"
TARGETS = (9, 11, 13, 17, 18, 21)
CASE = "onnx: "
SETS = 60
TRIES = 400  # attempts per requested mutant

# Operators that the exported models in the folder lack.
SMALL = {
    "quantized": (13, "g (float[N, 3, 8, 8] x) => (float[N, 3, 8, 8] y) <float s = {0.05}, uint8 z = {128}> "
                  "{ q = QuantizeLinear (x, s, z)  d = DequantizeLinear (q, s, z)  y = Relu (d) }"),
    "clipped": (13, "g (float[N, 4] x) => (float[N, 4] y) <float a = {-3}, float b = {6}> "
                "{ e = Exp (x)  t = Sub (e, a)  c = Clip (t, a, b)  y = Floor (c) }"),
    "guarded": (13, "g (float[N, 4] x) => (float[N, 4] y) <float o = {0}> "
                "{ n = IsNaN (x)  w = Where (n, o, x)  a = Abs (w)  y = Log (a) }"),
    "masked": (13, "g (bool[N, 4] m, float[N, 4] x) => (float[N, 4] y) <float low = {-1000000000}> "
               "{ w = Where (m, x, low)  y = Softmax <axis = -1> (w) }"),
    "whole numbers": (13, "g (int64[N, 4] x, int64[N, 4] z) => (int64[N, 4] y) <int64 k = {7}> "
                      "{ a = Sub (x, z)  b = Mod (a, k)  c = Max (b, z)  y = Abs (c) }"),
    "chosen": (13, "g (bool k, float[N, 4] x) => (float[N, 4] y) { n = Not (k)  y = If (n) "
               "<then_branch = t () => (float[N, 4] p) { p = Tanh (x) }, "
               "else_branch = e () => (float[N, 4] q) { r = Neg (x)  q = LeakyRelu <alpha = 0.2> (r) }> }"),
    "repeated": (13, "g (float[4] x) => (float[4] y) <int64 n = {3}, bool go = {1}, float h = {0.5}> "
                 "{ y = Loop (n, go, x) <body = b (int64 i, bool c, float[4] v) => (bool d, float[4] w) "
                 "{ d = Identity (c)  u = Mul (v, h)  w = Add (u, x) }> }"),
    "picked": (13, "g (float[N, 5] x) => (float[N, 2] y, int64[N, 2] i) <int64[1] k = {2}> "
               "{ y, i = TopK <axis = 1, largest = 1> (x, k) }"),
    "reduced": (13, "g (float[N, 4, 4] x) => (float[K] y, int64[N, 1] i) <int64[1] a = {2}, int64[1] f = {-1}> "
                "{ s = ReduceSum <keepdims = 0> (x, a)  r = ReduceMean <axes = [1], keepdims = 1> (s)  "
                "y = Reshape (r, f)  "
                "i = ArgMax <axis = 1> (s) }"),
    "compared": (13, "g (float[N, 4] x, float[N, 4] z) => (bool[N, 4] y) <float k = {2}> "
                 "{ a = Greater (x, z)  b = Less (x, k)  y = And (a, b) }"),
    "pooled": (13, "g (float[N, 2, 8, 8] x) => (float[N, 2, A, B] y) "
               "{ p = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (x)  y = Neg (p) }"),
    "split": (13, "g (float[N, 4] x) => (float[N, 2] y) { a, b = Split <axis = 1> (x)  y = Sub (a, b) }"),
    "normalized": (17, "g (float[N, 3, 4] x) => (float[N, 4, 3] y) "
                   "<float[4] s = {1, 2, 3, 4}, float[4] b = {0, 1, 2, 3}> "
                   "{ n = LayerNormalization <axis = -1, epsilon = 1e-5> (x, s, b)"
                   "  y = Transpose <perm = [0, 2, 1]> (n) }"),
}  # fmt: skip


# Operators that order by values or round them to integers: their pages do not say what happens to NaN and infinities.
OPEN = frozenset(
    {"ArgMax", "ArgMin", "GlobalMaxPool", "MaxPool", "NonMaxSuppression", "QuantizeLinear", "Resize", "TopK"}
)


@dataclass(frozen=True)
class Mutant:
    """One planted fault.

    Attributes:
        fault: its kind.
        model: the name of the model, and the opset version that it was converted to.
        where: the place.
        before, after: the source, and the conversion with the fault.
        honest: the conversion without the fault.
    """

    fault: str
    model: str
    where: str
    before: ModelProto
    after: ModelProto
    honest: ModelProto

    def __str__(self) -> str:
        """The fault in one line."""
        return f"{self.fault} in {self.model}: {self.where}"


@functools.cache
def _source(name: str) -> ModelProto:
    if name in SMALL:
        opset, body = SMALL[name]
        return model(body, opset)
    if name.startswith(CASE):
        return next(case.model for case in cases() if case.name == name.removeprefix(CASE))
    return onnx.load(FOLDER / f"{name}.onnx")


@functools.cache
def _converted(name: str, target: int) -> ModelProto | None:
    try:
        return convert_version(_source(name), target)
    except ConversionError:
        return None


def mutants(
    seed: int, count: int, names: Sequence[str] = (), faults: Sequence[str] = tuple(FAULTS)
) -> Iterator[Mutant]:
    """Valid models with a fault that onnxruntime loads, with the kinds in turn.

    Args:
        seed: chooses models, opset versions and places.
        count: how many.
        names: the models of `SMALL` and of the folder to use, or after `CASE` cases of onnx; if none are named, all of
            the former.
        faults: kinds of faults.
    """
    names = names or [*SMALL, *sorted(path.stem for path in FOLDER.glob("*.onnx"))]
    choose = random.Random(seed)
    planted = 0
    for number in range(count * TRIES):
        if planted == count:
            return
        fault = faults[number % len(faults)]
        name, target = choose.choice(names), choose.choice(TARGETS)
        honest = _converted(name, target)
        if honest is None:
            continue
        after, where = plant(honest, fault, seed + number)
        if not where or not _loads(after) or not _loads(honest):
            continue
        planted += 1
        yield Mutant(fault, f"{name} -> {target}", where, _source(name), after, honest)


def _is_plain(given: ModelProto) -> bool:
    """Whether a model has one node, and tensors alone as inputs, for which values are made here."""
    return len(given.graph.node) == 1 and all(value.type.tensor_type.elem_type for value in given.graph.input)


def _loads(given: ModelProto) -> bool:
    try:
        onnx.checker.check_model(given, full_check=True)
        unoptimized(given)
    except Exception:
        return False
    return True


def difference(mutant: Mutant, seed: int = 0) -> str:
    """How outputs differ between the conversions with and without the fault; an empty string if they do not.

    This is a second opinion that shares nothing with `verify`: it runs whole models on values of many kinds, and
    compares element by element.
    """
    honest, faulty = unoptimized(mutant.honest), unoptimized(mutant.after)
    for at in range(SETS):
        feeds = _feeds(mutant.honest, np.random.default_rng([seed, at]))
        try:
            expected = honest.run(None, feeds)
        except Exception:
            continue
        try:
            outputs = faulty.run(None, feeds)
        except Exception as error:
            return f"does not run: {str(error).splitlines()[0][:100]}"
        shown = next(filter(None, map(unlike, expected, outputs)), "")
        if shown:
            return shown
    return ""


def _feeds(given: ModelProto, rng: np.random.Generator) -> Mapping[str, np.ndarray]:
    constants = {item.name for item in given.graph.initializer}
    sizes: dict[str, int] = {}
    feeds = {}
    kind = int(rng.integers(4))
    is_open = any(node.op_type in OPEN for node in given.graph.node)
    for value in given.graph.input:
        if value.name in constants:
            continue
        tensor = value.type.tensor_type
        shape = [
            sizes.setdefault(dim.dim_param, int(rng.integers(1, 5))) if not dim.dim_value else dim.dim_value
            for dim in tensor.shape.dim
        ]
        dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        feeds[value.name] = _values(rng, shape, dtype, tensor.elem_type, kind, special=not is_open)
    return feeds


def _values(
    rng: np.random.Generator, shape: list[int], dtype: Any, element_type: int, kind: int, *, special: bool
) -> np.ndarray:
    if element_type == TensorProto.BOOL:
        return rng.integers(0, 2, shape).astype(dtype)
    if element_type in (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16):
        values = rng.standard_normal(shape) * (1.0, 10.0, 1000.0, 1e-3)[kind]
        edges = [0.0, -0.0, 0.5, 2.5, -1.5, 6.5, *((np.nan, np.inf, -np.inf) if special else ())]
        return np.where(rng.random(shape) < 0.1 * (kind == 1), rng.choice(edges, shape), values).astype(dtype)
    return rng.integers(*((-5, 6), (0, 3), (-1000, 1000), (0, 10))[kind], shape).astype(dtype)


def main() -> int:
    """Print every fault that was missed and every one that changes nothing; return 1 if one was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--cases", action="store_true", help="plant faults in onnx's own node cases")
    options = parser.parse_args()
    started = time.perf_counter()
    verdicts: Counter[str] = Counter()
    kinds: set[str] = set()
    missed = 0
    names = [f"{CASE}{case.name}" for case in cases() if _is_plain(case.model)] if options.cases else []
    for mutant in mutants(options.seed, options.count, names):
        kinds.add(mutant.fault)
        verification = verify(mutant.before, mutant.after)
        verdicts[verification.verdict] += 1
        if verification.verdict == "different":
            continue
        shown = difference(mutant)
        if shown and verification.verdict == "equivalent":
            missed += 1
            print(f"MISSED {mutant}: {shown}", flush=True)
        elif verification.verdict == "not shown":
            print(f"not shown {mutant}: {verification.unseen[:1]} ({shown or 'nothing shows'})", flush=True)
        else:
            print(f"equivalent {mutant}", flush=True)
    took = time.perf_counter() - started
    print(f"{sum(verdicts.values())} faults of {len(kinds)} kinds, {dict(verdicts)}, {missed} missed, {took:.0f} s")
    return 1 if missed else 0


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    sys.exit(status)
