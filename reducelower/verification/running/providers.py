"""The execution provider on which onnxruntime runs models, whichever build of it is installed."""

from __future__ import annotations

from importlib.util import find_spec

from reducelower.failures import SettingError
from reducelower.model.text import did_you_mean

__all__ = ["provider_named", "require_onnxruntime"]

_ENDING = "ExecutionProvider"
_ALSO = {"directml": "dml"}


def provider_named(name: str) -> str:
    """The execution provider of a name, such as ``cuda`` or ``CUDAExecutionProvider``, as onnxruntime spells it.

    Raises:
        SettingError: the onnxruntime that is installed does not have it, or there is none.
    """
    require_onnxruntime()
    import onnxruntime

    wanted = name.lower().removesuffix(_ENDING.lower())
    wanted = _ALSO.get(wanted, wanted)
    known: dict[str, str] = {item.removesuffix(_ENDING).lower(): item for item in onnxruntime.get_available_providers()}
    if wanted not in known:
        raise SettingError(
            f"the onnxruntime that is installed ({onnxruntime.__version__}) has no execution provider {name!r}; "
            f"it has {', '.join(sorted(known))}{did_you_mean(wanted, known)}"
        )
    return known[wanted]


def require_onnxruntime() -> None:
    """Make sure that onnxruntime can be imported; nothing is imported for that where nothing looks wrong.

    Raises:
        SettingError: there is none, or what is left of two builds that were installed over each other.
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
