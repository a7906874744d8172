"""Who does the work of a run over many models: processes of this machine, or the workers of a cluster."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from reducelower.failures import SettingError

if TYPE_CHECKING:
    from concurrent.futures import Executor

__all__ = ["workers"]


def workers(scheduler: str | None, jobs: int) -> AbstractContextManager[Executor | Any]:
    """The executor of a cluster for as long as it is used; None stands for this machine.

    Args:
        scheduler: the address of a Dask scheduler; None for this machine.
        jobs: how many processes of this machine may work.

    Raises:
        SettingError: both are asked for, or there is no such cluster.
    """
    if not scheduler:
        return nullcontext()
    if jobs > 1:
        raise SettingError(
            "--jobs is about this machine, and with --scheduler a cluster does the work; give one of them"
        )
    from reducelower.batch.cluster import dask_executor

    return dask_executor(scheduler)
