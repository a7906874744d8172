"""Settings for every run of a verification: provider, memory, isolation, time, seed, tolerances."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

from reducelower.errors import SettingError
from reducelower.numerics.tolerance import Tolerance, tolerance_for
from reducelower.text import did_you_mean
from reducelower.verification.running.clock import Clock

__all__ = [
    "CPU",
    "DEFAULT_MEMORY",
    "Conditions",
    "conditions",
    "provider_named",
    "require_onnxruntime",
    "under",
]

CPU = "CPUExecutionProvider"

DEFAULT_MEMORY = 1.0
"""GB that verification takes at most by default."""


@dataclass(frozen=True)
class Conditions:
    """The settings of runs.

    Attributes:
        provider: execution provider of onnxruntime, as it spells it.
        memory: GB that a run may take; None for no limit.
        feeds_empty: whether empty tensors are fed: not if a conversion assumes that there are none.
        isolates: whether each model runs in a process of its own, where processes can be forked.
        seed: for the values that are made.
        tolerances: the caller's, by element type, in place of the defaults.
        clock: the time left; once it is over, no run is begun.
    """

    provider: str = CPU
    memory: float | None = DEFAULT_MEMORY
    feeds_empty: bool = True
    isolates: bool = False
    seed: int = 0
    tolerances: tuple[tuple[str, Tolerance], ...] = ()
    clock: Clock = field(default_factory=lambda: Clock(None), compare=False, repr=False)

    def has_own_tolerance(self, element_type: str) -> bool:
        """Whether the caller chose the tolerance of an element type."""
        return element_type in dict(self.tolerances)

    def tolerance(self, element_type: str) -> Tolerance:
        """The tolerance for an element type."""
        return tolerance_for(element_type, dict(self.tolerances))


_current: ContextVar[Conditions] = ContextVar("conditions", default=Conditions())  # noqa: B039  # it is frozen


def conditions() -> Conditions:
    """The current settings."""
    return _current.get()


@contextmanager
def under(**changes: Any) -> Iterator[None]:
    """Change some of the `Conditions` within the block."""
    token = _current.set(replace(_current.get(), **changes))
    try:
        yield
    finally:
        _current.reset(token)


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
