"""Run models in a separate process, so that a runtime that crashes does not end the parent.

    PYTHON worker.py --adapter FILE PIPE
    PYTHON worker.py --python MODULE:FUNCTION [--path FOLDER] PIPE
    PYTHON worker.py --command 'runner {model} {inputs} {outputs}' PIPE

This file is run by its path, in the Python (3.8 or newer) that has the runtime. It needs only numpy.

PIPE is the file descriptor of a `multiprocessing` connection. Messages are .npz archives. At the start the worker sends
``version`` and ``tolerance``; then for each request (``model`` and one ``input:NAME`` for each input) it answers with
one ``output:N`` for each output or with ``error``.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import io
import shlex
import subprocess
import sys
import tempfile
from multiprocessing import connection
from pathlib import Path
from typing import Any, Callable, Dict, List  # noqa: UP035

import numpy as np

__all__ = ["pack", "unpack"]

# Python 3.8, which the oldest runtimes need, evaluates these and knows no list[...].
Arrays = Dict[str, Any]  # noqa: UP006
Runner = Callable[[bytes, Arrays], List[Any]]  # noqa: UP006

_LONGEST_ERROR = 2000


def pack(entries: Arrays) -> bytes:
    """Arrays and texts as an .npz archive; element types that numpy lacks are stored as bytes, with their names."""
    plain = {}
    for name, value in entries.items():
        array = np.asarray(value)
        if array.dtype.kind == "V":
            plain["type:" + name] = np.array(array.dtype.name)
            array = array.view(f"V{array.dtype.itemsize}")
        plain[name] = array
    buffer = io.BytesIO()
    np.savez(buffer, **plain)  # type: ignore[arg-type]  # numpy's types take the names for its own options
    return buffer.getvalue()


def unpack(data: bytes) -> Arrays:
    """The inverse of `pack`."""
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def _of_adapter(path: Path) -> tuple[Runner, str, float]:
    name = f"reducelower_runtime_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module.run, _version(module), float(getattr(module, "TOLERANCE", 0.0))


def _version(module: Any) -> str:
    """Import the runtime of an adapter and return its version."""
    if hasattr(module, "version"):
        return str(module.version())
    for name in module.MODULES:
        importlib.import_module(name)
    from importlib import metadata  # slow to import

    return metadata.version(module.PACKAGE)


def _of_function(name: str) -> tuple[Runner, str]:
    module_name, _, function = name.partition(":")
    module = importlib.import_module(module_name)
    return getattr(module, function), str(getattr(module, "__version__", ""))


def _of_command(template: str) -> tuple[Runner, str]:
    """A runner that passes files: the model, an archive of inputs, and the path for one of outputs."""

    def run(model: bytes, inputs: Arrays) -> list[Any]:
        with tempfile.TemporaryDirectory() as folder:
            files = {name: Path(folder, name) for name in ("model.onnx", "inputs.npz", "outputs.npz")}
            files["model.onnx"].write_bytes(model)
            np.savez(files["inputs.npz"], **inputs)
            words = shlex.split(template)
            for name, path in files.items():
                words = [word.replace("{" + Path(name).stem + "}", str(path)) for word in words]
            done = subprocess.run(
                words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False
            )
            if done.returncode:
                lines = [line for line in done.stdout.decode("utf-8", "replace").splitlines() if line.strip()]
                status = "exit status" if done.returncode > 0 else "signal"
                raise RuntimeError(f"{status} {abs(done.returncode)}: {lines[-1] if lines else 'it said nothing'}")
            if not files["outputs.npz"].exists():
                raise RuntimeError("the command ended well but wrote no outputs")
            with np.load(files["outputs.npz"], allow_pickle=False) as archive:
                return [archive[name] for name in archive.files]

    return run, ""


def _error_text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:_LONGEST_ERROR]


def _runner(arguments: argparse.Namespace) -> tuple[Runner, str, float]:
    if arguments.path:
        sys.path.insert(0, arguments.path)
    if arguments.adapter:
        return _of_adapter(Path(arguments.adapter))
    run, version = _of_function(arguments.python) if arguments.python else _of_command(arguments.command)
    return run, version, 0.0


def _serve(pipe: Any, arguments: argparse.Namespace) -> None:
    try:
        run, version, tolerance = _runner(arguments)
    except Exception as error:
        pipe.send_bytes(pack({"unusable": _error_text(error)}))
        return
    pipe.send_bytes(pack({"version": version, "tolerance": tolerance}))
    while True:
        try:
            request = unpack(pipe.recv_bytes())
        except (EOFError, OSError):  # the parent is gone
            return
        model = request["model"].tobytes()
        inputs = {name[len("input:") :]: value for name, value in request.items() if name.startswith("input:")}
        try:
            results = run(model, inputs)
            if not isinstance(results, (list, tuple)):
                raise TypeError(f"it returned a {type(results).__name__}, not a list of arrays")
            answer = {f"output:{at}": np.asarray(value) for at, value in enumerate(results)}
            if any(value.dtype == object for value in answer.values()):
                raise TypeError("an output is not an array")
        except BaseException as error:
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            answer = {"error": np.array(_error_text(error))}
        pipe.send_bytes(pack(answer))


def main() -> None:
    """Serve requests until the other end of the pipe is closed."""
    parser = argparse.ArgumentParser()
    kind = parser.add_mutually_exclusive_group(required=True)
    kind.add_argument("--adapter")
    kind.add_argument("--python")
    kind.add_argument("--command")
    parser.add_argument("--path")
    parser.add_argument("pipe", type=int)
    arguments = parser.parse_args()
    here = Path(__file__).resolve().parent
    # A runtime must not import this folder's modules in place of its own modules of the same name.
    sys.path[:] = [folder for folder in sys.path if Path(folder).resolve() != here]
    connect = getattr(connection, "PipeConnection", connection.Connection)  # the former on Windows
    _serve(connect(arguments.pipe), arguments)


if __name__ == "__main__":
    main()
