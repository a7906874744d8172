"""A process that runs cases and prints a JSON line for each stage; a runtime may crash it at any moment."""

from __future__ import annotations

import json
import sys
from typing import Any

from tools.fuzz.drawing import NotDrawableError
from tools.fuzz.generating import generate
from tools.fuzz.judging import judge
from tools.fuzz.showing import shown
from tools.fuzz.shrinking import shrink

__all__ = ["serve"]


def _say(**fields: Any) -> None:
    sys.__stdout__.write(json.dumps(fields) + "\n")  # type: ignore[union-attr]
    sys.__stdout__.flush()  # type: ignore[union-attr]


def serve(kind: str, seed: int, start: int, stop: int, *, shrinks: bool) -> None:
    """Run the cases with some numbers."""
    for number in range(start, stop):
        _say(number=number, stage="draw")
        try:
            case = generate(kind, seed, number)
        except NotDrawableError as error:
            _say(number=number, stage="done", kind="not drawn", detail=str(error))
            continue
        verdict = judge(case, reached=lambda stage, number=number: _say(number=number, stage=stage))  # type: ignore[misc]
        text = ""
        if verdict.is_finding:
            # Print the finding first, because the process may crash during the search for a smaller case.
            _say(number=number, stage="found", kind=verdict.kind, detail=verdict.detail, name=case.name)
            text = shown(shrink(case) if shrinks else case)
        _say(
            number=number, stage="done", kind=verdict.kind, detail=verdict.detail, name=case.name, text=text,
            judges=verdict.judges,
        )  # fmt: skip


if __name__ == "__main__":
    kind, seed, start, stop, shrinks = sys.argv[1:]
    serve(kind, int(seed), int(start), int(stop), shrinks=shrinks == "1")
