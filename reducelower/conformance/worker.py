"""Run models in a separate process, so that a runtime that crashes does not end the parent.

    PYTHON worker.py runtime NAME FILE PIPE
    PYTHON worker.py python MODULE:FUNCTION FOLDER PIPE
    PYTHON worker.py command 'runner {model} {inputs} {outputs}' '' PIPE

This file is run by its path, in the Python (3.8 or newer) that has the runtime. It needs only numpy.

FILE has the runtime in its table, and FOLDER is where a module is looked for first. PIPE is the file descriptor of a
`multiprocessing` connection. Messages are .npz archives. At the start the worker sends ``version`` and ``tolerance``;
then for each request (``model`` and one ``input:NAME`` for each input) it answers with one ``output:N`` for each output
or with ``error``.
"""

from __future__ import annotations

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


def _of_runtime(name: str, path: str) -> tuple[Runner, str, float]:
    """A row of the table in a file, once what it needs is imported."""
    spec = importlib.util.spec_from_file_location("reducelower_runtimes", path)
    assert spec is not None
    assert spec.loader is not None
    file = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(file)
    function, version, modules, *tolerance = file.RUNTIMES[name]
    for each in modules.split():
        importlib.import_module(each)
    if isinstance(version, str):
        from importlib import metadata  # slow to import

        number = metadata.version(version)
    else:
        number = version()
    return _with_file(function), number, *(tolerance or [0.0])


def _with_file(function: Callable[[Path, Arrays], Any]) -> Runner:
    """A runner by a function that takes the model as a file, which is alone in a folder."""

    def run(model: bytes, inputs: Arrays) -> list[Any]:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "model.onnx")
            file.write_bytes(model)
            results = function(file, inputs)
            return list(results) if isinstance(results, (list, tuple)) else [results]

    return run


def _of_function(name: str, folder: str) -> tuple[Runner, str, float]:
    sys.path.insert(0, folder)
    module_name, _, function = name.partition(":")
    module = importlib.import_module(module_name)
    return getattr(module, function), str(getattr(module, "__version__", "")), 0.0


def _of_command(template: str, _: str) -> tuple[Runner, str, float]:
    """A runner that passes files: the model, an archive of inputs, and the path for one of outputs."""

    def run(model: Path, inputs: Arrays) -> list[Any]:
        files = {"model": model, "inputs": model.with_name("inputs.npz"), "outputs": model.with_name("outputs.npz")}
        np.savez(files["inputs"], **inputs)
        words = shlex.split(template)
        for name, path in files.items():
            words = [word.replace("{" + name + "}", str(path)) for word in words]
        done = subprocess.run(
            words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False
        )
        if done.returncode:
            lines = [line for line in done.stdout.decode("utf-8", "replace").splitlines() if line.strip()]
            status = "exit status" if done.returncode > 0 else "signal"
            raise RuntimeError(f"{status} {abs(done.returncode)}: {lines[-1] if lines else 'it said nothing'}")
        if not files["outputs"].exists():
            raise RuntimeError("the command ended well but wrote no outputs")
        with np.load(files["outputs"], allow_pickle=False) as archive:
            return [archive[name] for name in archive.files]

    return _with_file(run), "", 0.0


_KINDS = {"runtime": _of_runtime, "python": _of_function, "command": _of_command}


def _error_text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:_LONGEST_ERROR]


def _serve(pipe: Any, kind: str, name: str, place: str) -> None:
    try:
        run, version, tolerance = _KINDS[kind](name, place)
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
    kind, name, place, pipe = sys.argv[1:]
    here = Path(__file__).resolve().parent
    # A runtime must not import this folder's modules in place of its own modules of the same name.
    sys.path[:] = [folder for folder in sys.path if Path(folder).resolve() != here]
    connect = getattr(connection, "PipeConnection", connection.Connection)  # the former on Windows
    _serve(connect(int(pipe)), kind, name, place)


if __name__ == "__main__":
    main()
