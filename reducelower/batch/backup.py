"""Keeps a model that is about to be replaced."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from reducelower.failures import SettingError

__all__ = ["keep_backup"]


def keep_backup(model: Path) -> Path:
    """Give a model file a second name, ``NAME.bak``; nothing is copied where the file system has hard links.

    Returns:
        The backup. One that holds the same already stays as it is.

    Raises:
        SettingError: a backup of something else is in the way.
    """
    real = Path(os.path.realpath(model))
    backup = real.with_name(f"{real.name}.bak")
    if backup.exists():
        if _holds_the_same(real, backup):
            return backup
        raise SettingError(f"{backup} exists already and holds something else; move it away")
    try:
        os.link(real, backup)
    except OSError:
        shutil.copy2(real, backup)
    return backup


def _holds_the_same(left: Path, right: Path) -> bool:
    from filecmp import cmp

    return cmp(left, right, shallow=False)
