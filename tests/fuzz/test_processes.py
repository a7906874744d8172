"""What is run in processes that die, and how a case is shown."""

from __future__ import annotations

import sys
from pathlib import Path

import onnx.parser
import onnx.printer

from tools.fuzz import processes
from tools.fuzz.drawing import NotDrawableError
from tools.fuzz.generating import generate
from tools.fuzz.showing import model_text

DYING = """
import json, os, sys
start, stop = int(sys.argv[5]), int(sys.argv[6])
for number in range(start, stop):
    for stage in ("draw", "source", "result"):
        print(json.dumps({"number": number, "stage": stage}), flush=True)
        if (number, stage) in {(1, "source"), (2, "result")}:
            os.abort()
    print(json.dumps({"number": number, "stage": "done", "kind": "equal"}), flush=True)
"""


def test_a_run_goes_on_behind_a_case_that_ends_the_process(tmp_path: Path) -> None:
    script = tmp_path / "dying"
    script.write_text(f"#!{sys.executable}\n{DYING}")
    script.chmod(0o755)
    found = list(processes.results("nodes", 1, 0, 5, python=str(script)))
    assert [one.number for one in found] == [0, 1, 2, 3, 4]
    assert [one.kind for one in found] == ["equal", "source ends the process", "death", "equal", "equal"]


def test_models_are_shown_as_text_that_can_be_read_or_with_their_bytes() -> None:
    read = 0
    for number in range(0, 120, 3):
        try:
            model = generate("nodes", 11, number).model
        except NotDrawableError:
            continue
        shown = model_text(model)
        if "# bytes" not in shown:
            assert onnx.printer.to_text(onnx.parser.parse_model(shown)) == shown
            read += 1
    assert read > 10
