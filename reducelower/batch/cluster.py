"""Use an existing Dask cluster as an executor."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from reducelower import __version__
from reducelower.errors import SettingError
from reducelower.options import Settings

__all__ = ["absolute", "anchored", "check_workers", "dask_executor"]


@contextmanager
def dask_executor(address: str, patience: float = 10.0) -> Iterator[Executor]:
    """Connect to a Dask scheduler, which must answer within `patience` seconds; the cluster keeps running.

    Yields:
        An executor that runs every task at least once: the task of a lost worker runs again on another one.

    Raises:
        SettingError: Dask is not installed, no scheduler answers, or workers lack reducelower or have another version.
    """
    try:
        from distributed import Client
    except ImportError:
        raise SettingError("--scheduler needs Dask; pip install 'reducelower[dask]'") from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # our own messages say what matters
    connect: Any = Client  # it has no types
    try:
        asyncio.run(asyncio.wait_for(_identity(address), patience))
        client = connect(address, timeout=patience, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        reason = f" ({error})" if isinstance(error, ValueError) else ""
        raise SettingError(
            f"no Dask scheduler answers at {address} within {patience:g} s{reason}; "
            "give the address that 'dask scheduler' prints"
        ) from None
    with client:
        check_workers(client, address)
        # Not pure: a conversion that is requested twice must write twice.
        yield client.get_executor(pure=False)


async def _identity(address: str) -> Any:
    """Ask a scheduler for its identity: Dask's own client would wait for ever if it listens but does not answer."""
    from distributed import Security
    from distributed.core import rpc

    security: Any = Security
    scheduler: Any = rpc
    remote = scheduler(address, connection_args=security().get_connection_args("client"))
    try:
        return await remote.identity()
    finally:
        await remote.close_rpc()


def anchored(models: Iterable[str], settings: Settings) -> tuple[list[str], Settings]:
    """Models and settings with absolute paths, for workers in other folders."""
    from reducelower.rulebook import shipped_books

    rules = settings.rules
    if isinstance(rules, str | os.PathLike) and rules not in shipped_books():
        rules = absolute(rules)
    inputs = {name: absolute(path) for name, path in settings.inputs.items()}
    test_data = settings.test_data and absolute(settings.test_data)
    return list(map(absolute, models)), replace(settings, rules=rules, inputs=inputs, test_data=test_data)


def absolute(path: str | os.PathLike[str]) -> str:
    """An absolute path; links are not followed."""
    return os.path.abspath(path)  # noqa: PTH100 (resolve() follows links)


def check_workers(client: Any, address: str) -> None:
    """Check the workers before any work; those that join later are not checked.

    Raises:
        SettingError: workers lack reducelower or have another version.
    """
    found = client.get_versions(packages=["reducelower"])["workers"].values()
    if others := sorted({each["packages"]["reducelower"] or "missing" for each in found} - {__version__}):
        raise SettingError(
            f"on the workers of {address}, reducelower is {', '.join(others)}, and here it is {__version__}; "
            "install the same version everywhere"
        )
