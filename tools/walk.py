"""Count the function calls for converting one node to another opset version, and the modules they are in.

    python -m tools.walk [--by-module]

The node is a ReduceMean with constant axes, from opset 18 to 13, from bytes to bytes, after all imports and reading of
rules, and with an empty memo.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

from onnx import ModelProto, parser

import reducelower
from reducelower.legalization.memo import forget

PACKAGE = str(Path(reducelower.__file__).parent)


def reduction() -> ModelProto:
    """A model with one ReduceMean."""
    return parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 18]> g (float[b, 3, 4] x) => (float[b, 1, 4] y)
        <int64[1] axes = {1}> { y = ReduceMean (x, axes) }"""
    )


def calls_of(data: bytes, opset: int) -> Counter[str]:
    """The number of calls of the package's functions in a conversion, by module."""
    reducelower.convert_version(data, opset)
    forget()
    calls: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _: object) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(PACKAGE):
            calls[path[len(PACKAGE) + 1 :]] += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        reducelower.convert_version(data, opset)
    finally:
        sys.setprofile(before)
    return calls


def main() -> None:
    """Print what the command line asks for."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--by-module", action="store_true", help="print the calls in each module")
    calls = calls_of(reduction().SerializeToString(), 13)
    print(f"{calls.total()} calls in {len(calls)} modules")
    if arguments.parse_args().by_module:
        for module, count in calls.most_common():
            print(f"{count:6} {module}")


if __name__ == "__main__":
    main()
