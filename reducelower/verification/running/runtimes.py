"""Runtimes behind one small protocol: onnxruntime, onnx's reference evaluator, and others in processes of their own."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np
from onnx import ModelProto, ValueInfoProto

from reducelower.errors import SettingError
from reducelower.model.validate import find_call_defect
from reducelower.numerics.measure import Array, is_narrow_float
from reducelower.verification.running.clock import terminated_after
from reducelower.verification.running.conditions import conditions
from reducelower.verification.running.isolated import IsolatedSession
from reducelower.verification.running.memory import (
    SHRINKING,
    Judged,
    TooLargeError,
    allowed_bytes,
    arena_exhausted,
    with_arena,
)
from reducelower.verification.running.sizes import evaluator_bytes, shape_key
from reducelower.verification.running.source import (
    CannotRunError,
    OutOfTimeError,
    Session,
    Source,
    as_declared,
    default_opset,
    plainly_spelled,
)
from reducelower.verification.running.weights import held_by

__all__ = ["RUNTIMES", "Runtime", "Session", "runtime_named", "try_load", "try_run"]


class Runtime(Protocol):
    """Something that runs ONNX models."""

    name: str

    def load(self, source: Source) -> Session:
        """Load a model.

        Raises:
            CannotRunError: the runtime does not accept it, or is not installed.
        """


_SMALL = 1 << 20  # bytes


class OnnxRuntime:
    """onnxruntime, without graph optimizations, so that the model runs as it is written."""

    name = "onnxruntime"

    def __init__(self, provider: str = "", *, optimizes: bool = False) -> None:
        """Choose the execution provider (by default that of the `Conditions`), and whether to optimize as users do."""
        self._provider = provider or conditions().provider
        self._optimizes = optimizes

    def load(self, source: Source) -> Session:
        """Load from memory; onnxruntime uses weights held beside the model without a copy."""
        _refuse_endless(source)
        session = IsolatedSession(partial(self._load, source)) if conditions().isolates else self._load(source)
        return Judged(session, source.proto)

    def _load(self, source: Source) -> Session:
        weights = held_by(source.proto)
        if weights:
            try:
                return self._session(source, source.proto.SerializeToString(), weights)
            except CannotRunError:
                pass  # its message is about the complete model, loaded below
        return self._session(source, source.serialized(), {})

    def _session(self, source: Source, model: bytes, weights: Mapping[str, Array]) -> Session:
        try:
            import onnxruntime
        except ImportError as error:
            raise CannotRunError("onnxruntime is not installed", unsupported=True) from error

        options = onnxruntime.SessionOptions()
        if not self._optimizes:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 4
        options.enable_mem_pattern = False
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        # Packing takes longer than it saves in a few runs, and may change the order of computation on one side.
        options.add_session_config_entry("session.disable_prepacking", "1")
        if weights:
            values = [onnxruntime.OrtValue.ortvalue_from_numpy(value) for value in weights.values()]
            options.add_external_initializers(list(weights), values)
        elif len(model) < _SMALL:
            options.intra_op_num_threads = 1  # to start more would take longer than the run
        try:
            with with_arena(options, len(model)):
                session = onnxruntime.InferenceSession(model, options, providers=[self._provider])
        except Exception as error:  # onnxruntime raises one class per status code, and plain RuntimeError
            cause = _onnxruntime_error(error)
            is_old = default_opset(source.proto) < _OLDEST
            raise CannotRunError(cause.reason, unsupported=cause.unsupported or is_old) from error
        if self._provider not in session.get_providers():
            raise SettingError(f"onnxruntime could not start {self._provider}; its own message says what is missing")
        return _OnnxRuntimeSession(session, weights, has_arena=options.enable_cpu_mem_arena)


class _OnnxRuntimeSession:
    def __init__(self, session: Any, weights: Mapping[str, Array], *, has_arena: bool) -> None:
        self._session = session
        self._weights = weights  # they must live as long as the session
        self._has_arena = has_arena
        self._quiet = _quiet_run(has_arena)

    def run(self, feeds: Mapping[str, Any], timeout: float | None = None) -> list[Any]:
        for name, value in feeds.items():
            if not isinstance(value, np.ndarray) or value.dtype.kind in _PLAIN:
                continue
            if is_narrow_float(value) or value.dtype.name == "bfloat16":
                raise CannotRunError(f"onnxruntime takes no {value.dtype.name} arrays ({name!r})", unsupported=True)
        # Options of a run that was stopped would stop the next one too, so a run with a timeout gets its own.
        options = self._quiet if timeout is None else _quiet_run(self._has_arena)
        try:
            # Copies, since in training onnxruntime overwrites inputs that hold statistics.
            own = {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in feeds.items()}
            with terminated_after(options, timeout):
                return list(self._session.run(None, own, options))
        except Exception as error:  # as above
            if options.terminate:
                raise OutOfTimeError(f"it did not finish within {timeout:.0f} s") from error
            raise arena_exhausted(str(error)) or _onnxruntime_error(error) from error


_PLAIN = "biufcOSU"  # numpy's own kinds of types


def _quiet_run(has_arena: bool) -> Any:
    import onnxruntime

    options = onnxruntime.RunOptions()
    options.log_severity_level = 4
    if has_arena:
        options.add_run_config_entry(*SHRINKING)
    return options


# Messages about gaps of onnxruntime itself. Names with ``_inlfunc_`` are values of a function body that it inlined;
# ``InsertedPrecisionFreeCast_`` are nodes that it inserts for float16. onnxruntime 1.30 gets their types wrong, so a
# type error there is not the model's.
_LACKS = (
    "NOT_IMPLEMENTED",
    "Unsupported model IR version",
    "_inlfunc_",
    "InsertedPrecisionFreeCast_",
    "can't be converted to MLDataType",
    "only *guarantees* support",
)
# Neither runtime was made for older opsets: they run what means the same by chance and object to the rest, such as Cast
# below opset 6, whose type is a name.
_OLDEST = 7
_PLACE_IN_CODE = re.compile(r"^/\S+:\d+ .*?\) (?=[A-Z])|^.*Status Message: ")


def _onnxruntime_error(error: Exception) -> CannotRunError:
    """Shorten onnxruntime's message, and tell a gap in the runtime from a fault in the model."""
    text = " ".join(str(error).split())
    message = re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", text)
    message = _PLACE_IN_CODE.sub("", message).rstrip(".")
    return CannotRunError(f"onnxruntime: {message[:300]}", unsupported=any(mark in text for mark in _LACKS))


class ReferenceRuntime:
    """onnx's own reference evaluator: numpy, every element type, every opset the installed onnx knows.

    It runs the newest behaviour of some operators under an old opset too; see `reference_gaps.wrong_in_reference`.
    """

    name = "reference"

    def load(self, source: Source) -> Session:
        """Load with the external data, which the evaluator cannot find by itself."""
        _refuse_endless(source)
        from reducelower.verification.running.evaluator import Evaluator

        model = plainly_spelled(source.complete())
        try:
            with _quiet():
                session = _ReferenceSession(model, Evaluator(model))
        except Exception as error:  # the evaluator raises whatever its operators raise
            raise _reference_error(error) from error
        return Judged(session, source.proto)


@dataclass(frozen=True)
class _ReferenceSession:
    model: ModelProto
    evaluator: Any
    needed: dict[object, int] = field(default_factory=dict)

    def run(self, feeds: Mapping[str, Any], timeout: float | None = None) -> list[Any]:
        key = tuple(map(shape_key, feeds.values()))
        if key not in self.needed:
            self.needed[key] = evaluator_bytes(self.model, feeds)
        if self.needed[key] > allowed_bytes():
            raise TooLargeError.of(self.needed[key])
        graph = self.model.graph
        try:
            with _quiet():
                # Where a model is widened, its inputs are too.
                given = {item.name: _as_typed(feeds[item.name], item) for item in graph.input if item.name in feeds}
                results = self.evaluator.run(None, given)
                return list(map(_as_typed, results, graph.output))
        except Exception as error:  # as above
            cause = _reference_error(error)
            is_old = default_opset(self.model) < _OLDEST
            raise CannotRunError(cause.reason, unsupported=cause.unsupported or is_old) from error


def _as_typed(value: Any, declared: ValueInfoProto) -> Any:
    return as_declared(value, declared.type.tensor_type.elem_type)


def _reference_error(error: Exception) -> CannotRunError:
    """A CannotRunError; operators that the evaluator lacks, or lacks for a type, say nothing against the model."""
    from onnx.reference.op_run import RuntimeTypeError

    lacking = isinstance(error, (NotImplementedError, RuntimeTypeError))
    # Other axes of Scan and missing versions of an operator are plain RuntimeErrors.
    marks = ("Issues with types", "is not implemented", "No implementation for operator")
    unsupported = lacking or any(mark in str(error) for mark in marks)
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return CannotRunError(f"reference evaluator: {lines[0][:300].rstrip('.')}", unsupported=unsupported)


RUNTIMES: Mapping[str, type[Runtime]] = {runtime.name: runtime for runtime in (OnnxRuntime, ReferenceRuntime)}
"""The runtimes in this process, by name."""


def runtime_named(name: str) -> Runtime:
    """The runtime with this name.

    Args:
        name: one of `RUNTIMES`, or one with an adapter in `reducelower.conformance`, which runs in a process of its
            own; ``NAME:PYTHON`` if another Python has it installed.

    Raises:
        ValueError: there is no such runtime.
    """
    if name in RUNTIMES:
        return RUNTIMES[name]()
    from reducelower.verification.running.foreign import ADAPTERS, ForeignRuntime, is_foreign

    if not is_foreign(name):
        raise ValueError(f"no runtime is called {name!r}; there are {', '.join(sorted({*RUNTIMES, *ADAPTERS}))}")
    return ForeignRuntime(name)


def _refuse_endless(source: Source) -> None:
    """Raise CannotRunError for functions that stand for too many nodes, since no time limit ends their inlining."""
    defect = find_call_defect(source.proto) if source.proto.functions else ""
    if defect:
        raise CannotRunError(defect, unsupported=True)


def try_load(runtime: Runtime, source: Source) -> Session | None:
    """The model loaded in a runtime; None if the runtime does not accept it."""
    try:
        return runtime.load(source)
    except CannotRunError:
        return None


def try_run(session: Session | None, feeds: Mapping[str, Any]) -> list[Any] | None:
    """The results of a model; None if it was not loaded or cannot run on these inputs."""
    try:
        return None if session is None else session.run(feeds)
    except CannotRunError:
        return None


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep numpy's warnings about overflow and invalid values off the terminal: such values are compared."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield
