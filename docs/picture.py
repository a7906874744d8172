"""Take the picture of a report for the first pages: `python docs/picture.py`, with Chromium installed.

The picture records the templates that it was taken of, so that a test notices when reports look different.
"""

from __future__ import annotations

import hashlib
import shutil
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "report.png"
SIZE = (1200, 1440)
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_HEADER = len(_SIGNATURE) + 25


def looks() -> str:
    """SHA-256 of the files that decide how a report looks."""
    templates = sorted((ROOT / "reducelower" / "report" / "templates").glob("p[ai]*"))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in templates)).hexdigest()


def taken_of(picture: bytes) -> str:
    """The recorded hash in a picture."""
    name, _, text = picture[_HEADER + 8 :].partition(b"\0")
    assert name == b"looks"
    return text[:64].decode()


def main() -> None:
    model = ROOT / "examples" / "models" / "gaussian_mixture_20.onnx"
    with TemporaryDirectory() as folder:
        shutil.copy(model, Path(folder) / "model.onnx")
        report, shot = Path(folder) / "report.html", Path(folder) / "shot.png"
        command = "convert model.onnx -o model13.onnx --opset 13 --without ReduceLogSumExp --report report.html --quiet"
        subprocess.run([sys.executable, "-m", "reducelower", *command.split()], cwd=folder, check=True)
        browser = shutil.which("chromium") or "google-chrome"
        flags = ["--headless", "--no-sandbox", "--hide-scrollbars", "--window-size={},{}".format(*SIZE)]
        subprocess.run([browser, *flags, f"--screenshot={shot}", report.as_uri()], check=True, capture_output=True)
        PICTURE.write_bytes(_marked(shot.read_bytes()))


def _marked(picture: bytes) -> bytes:
    """The picture with the hash in a text chunk after the header."""
    chunk = b"tEXtlooks\0" + looks().encode()
    block = struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk))
    return picture[:_HEADER] + block + picture[_HEADER:]


if __name__ == "__main__":
    main()
