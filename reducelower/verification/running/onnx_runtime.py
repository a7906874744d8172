"""onnxruntime: its sessions, what they may take, and how they are stopped."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto

from reducelower.child import Child
from reducelower.errors import SettingError
from reducelower.numerics.measure import Array, is_narrow_float
from reducelower.verification.running.clock import terminated_after
from reducelower.verification.running.conditions import conditions, under
from reducelower.verification.running.memory import TooLargeError, allowed_bytes, check_results
from reducelower.verification.running.source import CannotRunError, Session, Source, default_opset
from reducelower.verification.running.weights import held_by, in_files

__all__ = ["OLDEST", "OnnxRuntime"]

_SMALL = 1 << 20  # bytes
_MICROSOFT = "com.microsoft"


class OnnxRuntime:
    """onnxruntime, without graph optimizations, so that the model runs as it is written."""

    name = "onnxruntime"

    def __init__(self, provider: str = "", *, optimizes: bool = False) -> None:
        """Choose the execution provider (by default that of the `Conditions`), and whether to optimize as users do."""
        self._provider = provider or conditions().provider
        self._optimizes = optimizes

    def load(self, source: Source) -> Session:
        """Load from memory; onnxruntime uses weights held beside the model without a copy."""
        source.refuse_endless()
        return _IsolatedSession(partial(self._load, source)) if conditions().isolates else self._load(source)

    def _load(self, source: Source) -> Session:
        model, folder = in_files(source.proto)
        weights = held_by(model)
        if weights or folder is not None:
            try:
                return self._session(source, model.SerializeToString(), weights, folder)
            except CannotRunError:
                pass  # its message is about the complete model, loaded below
        return self._session(source, source.serialized(), {})

    def _session(
        self, source: Source, model: bytes, weights: Mapping[str, Array], folder: Path | None = None
    ) -> Session:
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
        if all(item.domain != _MICROSOFT for item in source.proto.opset_import):  # some kernels there need packing
            # It takes longer than it saves in a few runs, and may change the order of computation on one side.
            options.add_session_config_entry("session.disable_prepacking", "1")
        if folder is not None:
            options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder))
        if weights:
            values = [onnxruntime.OrtValue.ortvalue_from_numpy(value) for value in weights.values()]
            options.add_external_initializers(list(weights), values)
        elif folder is None and len(model) < _SMALL:
            options.intra_op_num_threads = 1  # to start more would take longer than the run
        try:
            with _with_arena(options, len(model)):
                session = onnxruntime.InferenceSession(model, options, providers=[self._provider])
        except Exception as error:  # onnxruntime raises one class per status code, and plain RuntimeError
            cause = _onnxruntime_error(error)
            is_old = default_opset(source.proto) < OLDEST
            raise CannotRunError(cause.reason, unsupported=cause.unsupported or is_old) from error
        if self._provider not in session.get_providers():
            raise SettingError(f"onnxruntime could not start {self._provider}; its own message says what is missing")
        return _OnnxRuntimeSession(source.proto, session, weights, has_arena=options.enable_cpu_mem_arena)


class _OnnxRuntimeSession:
    def __init__(self, model: ModelProto, session: Any, weights: Mapping[str, Array], *, has_arena: bool) -> None:
        self._model = model
        self._session = session
        self._weights = weights  # they must live as long as the session
        self._has_arena = has_arena
        self._quiet = _quiet_run(has_arena)

    def run(self, feeds: Mapping[str, Any]) -> list[Any]:
        clock = conditions().clock
        clock.check()
        timeout = clock.left
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
                results = list(self._session.run(None, own, options))
        except Exception as error:  # as above
            if options.terminate:
                raise clock.error from error
            raise _arena_exhausted(str(error)) or _onnxruntime_error(error) from error
        check_results(results, self._model)
        return results


_PLAIN = "biufcOSU"  # numpy's own kinds of types


def _quiet_run(has_arena: bool) -> Any:
    import onnxruntime

    options = onnxruntime.RunOptions()
    options.log_severity_level = 4
    if has_arena:
        options.add_run_config_entry(*_SHRINKING)
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
OLDEST = 7
_PLACE_IN_CODE = re.compile(r"^(?:.*Status Message: )?(?:/\S+:\d+ .*?(?: was false\. |[)\]] (?=[A-Z])))?")


def _onnxruntime_error(error: Exception) -> CannotRunError:
    """Shorten onnxruntime's message, and tell a gap in the runtime from a fault in the model."""
    text = " ".join(str(error).split())
    message = re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", text)
    message = _PLACE_IN_CODE.sub("", message).rstrip(".")
    return CannotRunError(f"onnxruntime: {message[:300]}", unsupported=any(mark in text for mark in _LACKS))


# A session of onnxruntime uses the arena that was registered last in the process, so one session is made at a time.
_registering = threading.Lock()
_SHRINKING = "memory.enable_memory_arena_shrinkage", "cpu:0"
"""Option of a run: at its end, the arena gives back what is unused."""


def _renew() -> None:
    global _registering
    _registering = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)  # the child lacks the thread that may hold the lock


@contextmanager
def _with_arena(options: Any, weights: int) -> Iterator[None]:
    """Let the session that is made in the block allocate as much as a run may take, and its weights.

    Args:
        options: of the session.
        weights: the bytes of the weights that it copies.
    """
    import onnxruntime

    allowed = allowed_bytes()
    with _registering:
        if np.isfinite(allowed):
            arena = {"max_mem": int(allowed) + weights, "arena_extend_strategy": _AS_REQUESTED}
            place = onnxruntime.OrtMemoryInfo(
                "Cpu", onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, onnxruntime.OrtMemType.DEFAULT
            )
            onnxruntime.create_and_register_allocator(place, onnxruntime.OrtArenaCfg(arena))
            options.add_session_config_entry("session.use_env_allocators", "1")
        else:
            options.enable_cpu_mem_arena = False  # the arena takes up to twice what a run needs, and keeps it
        yield


_AS_REQUESTED = 1
"""The arena grows by the requested size instead of doubling."""
_EXHAUSTED = re.compile(r"Available memory of (\d+) is smaller than requested bytes of (\d+)")


def _arena_exhausted(message: str) -> TooLargeError | None:
    """The error for a message of onnxruntime that says that the arena is exhausted; None for other messages."""
    match = _EXHAUSTED.search(message)
    return TooLargeError.of(allowed_bytes() - int(match[1]) + int(match[2])) if match else None


class _IsolatedSession:
    """A session in a process of its own, since onnxruntime ends its process on some models; forked again if it did."""

    def __init__(self, load: Callable[[], Any]) -> None:
        """Load a model in a process, as a `Session`.

        Raises:
            CannotRunError: the runtime does not accept it, or ends the process.
        """
        self._load = load
        self._child: Child | None = None
        self._start()

    def run(self, feeds: Mapping[str, Any]) -> list[Any]:
        """Run once, as a `Session` does; a CannotRunError if that ends the process."""
        clock = conditions().clock
        clock.check()
        child = self._child or self._start()
        child.pipe.send((feeds, clock))
        results: list[Any] = self._answer(child)
        return results

    def _start(self) -> Child:
        self._child = Child.of_function(_serve, self._load, leads_group=False)
        self._answer(self._child)
        return self._child

    def _answer(self, child: Child) -> Any:
        try:
            answer = child.pipe.recv()
        except (EOFError, OSError):
            self._child, death = None, child.death()
            # When memory runs out, the system kills the process that uses most.
            raise CannotRunError(
                f"onnxruntime ends its process: {death.text}", unsupported=death.status == -signal.SIGKILL
            ) from None
        if isinstance(answer, Exception):
            raise answer
        return answer


def _serve(pipe: Any, load: Callable[[], Any]) -> None:
    """Load the model in the new process, then run it for each request."""
    try:
        session = load()
        pipe.send(None)
    except Exception as error:
        pipe.send(error)
        return
    while True:
        feeds, clock = pipe.recv()
        try:
            with under(clock=clock):
                pipe.send(session.run(feeds))
        except Exception as error:
            pipe.send(error)
