"""Finds an execution provider of the installed onnxruntime by name."""

from __future__ import annotations

from importlib.util import find_spec

from reducelower.errors import SettingError
from reducelower.model.text import did_you_mean

__all__ = ["provider_named", "require_onnxruntime"]

_ENDING = "ExecutionProvider"
_ALSO = {"directml": "dml"}


def provider_named(name: str) -> str:
    """The execution provider as onnxruntime spells it, for a name such as ``cuda`` or ``CUDAExecutionProvider``.

    Raises:
        SettingError: the installed onnxruntime does not have it, or onnxruntime is not installed.
    """
    require_onnxruntime()
    import onnxruntime

    wanted = name.lower().removesuffix(_ENDING.lower())
    wanted = _ALSO.get(wanted, wanted)
    names: dict[str, str] = {item.removesuffix(_ENDING).lower(): item for item in onnxruntime.get_available_providers()}
    if wanted not in names:
        raise SettingError(
            f"the onnxruntime that is installed ({onnxruntime.__version__}) has no execution provider {name!r}; "
            f"it has {', '.join(sorted(names))}{did_you_mean(wanted, names)}"
        )
    return names[wanted]


def require_onnxruntime() -> None:
    """Make sure that onnxruntime can be imported, without importing it.

    Raises:
        SettingError: it is not installed, or broken since two builds were installed over each other.
    """
    spec = find_spec("onnxruntime")
    if spec is None:
        raise SettingError(
            "onnxruntime is not installed, and models are verified in it: install the build for this machine, such as "
            "onnxruntime or onnxruntime-gpu, or give --no-verify"
        )
    if spec.origin is None:
        raise SettingError(
            "the onnxruntime that is installed is broken, as two builds leave it that were installed over each other: "
            "uninstall both (pip uninstall onnxruntime onnxruntime-gpu), then install the one that you need"
        )
