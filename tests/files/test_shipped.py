"""Models that come with the repository say nothing of the machine that they were made on."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("tests/data", "tests/runtimes/measured", "examples")
PLACES = re.compile(
    rb"stack_trace|File \"|/(?:root|home|tmp|usr|opt|mnt|Users|private)/|[A-Z]:\\\\|(?:site|dist)-packages"
)

FILES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in (".onnx", ".gz"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_file_names_a_folder_of_the_machine_it_was_made_on(path: Path) -> None:
    data = path.read_bytes()
    found = PLACES.search(gzip.decompress(data) if path.suffix == ".gz" else data)
    assert found is None, found


def test_the_folders_of_machines_are_recognized() -> None:
    written = b'pkg.torch.onnx.stack_trace\x12\x40File "/home/someone/model.py", line 3, in forward'
    assert len(FILES) > 40
    assert PLACES.search(written)
    assert PLACES.search(rb'File "C:\Users\someone\model.py"')
