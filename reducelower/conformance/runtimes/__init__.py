"""One module per runtime, loaded by its path in the Python that has the runtime, and never imported by reducelower.

Each has ``run(model, inputs)``, from bytes and arrays by name to the list of outputs. Before the first model, the
worker imports the ``MODULES``, to report missing ones, and reads the version of the ``PACKAGE``. A function
``version()`` replaces both. The modules do not import reducelower; some need onnx.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["RUNTIMES", "adapter"]

RUNTIMES = tuple(sorted(path.stem.replace("_", "-") for path in Path(__file__).parent.glob("[!_]*.py")))
"""The runtimes with an adapter."""


def adapter(name: str) -> Path:
    """The file of a runtime's adapter.

    Raises:
        KeyError: there is no adapter of that name.
    """
    if name not in RUNTIMES:
        raise KeyError(name)
    return Path(__file__).parent / f"{name.replace('-', '_')}.py"
