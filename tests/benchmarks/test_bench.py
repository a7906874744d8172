import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

GROUPS = {
    "nodes": ("convert 13 -> 18", "convert 18 -> 13", "convert 18 -> 20"),
    "expand": ("expand, 200 nodes, spec", "expand, 200 nodes, stable", "expand, 200 nodes, core"),
    "raise": ("raise, ", "time per node, raise"),
    "command": ("convert small.onnx",),
    "many": ("4 models of 20 to 99 nodes, --jobs 2",),
    "inline": ("inline weights",),
    "external": ("external data",),
    "verification": ("verify 13 -> 18 by sites, 50 nodes", "verify 13 -> 18 by sites and whole, 50 nodes (equivalent)"),
}


def test_quick_run_prints_every_line_and_writes_it_as_json(tmp_path: Path) -> None:
    out = tmp_path / "bench.json"
    command = [sys.executable, ROOT / "benchmarks" / "bench.py", "--quick", "--only", ",".join(GROUPS), "--out", out]
    run = subprocess.run(
        [*command, "--scratch", tmp_path],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    report = json.loads(out.read_text())
    assert report["machine"]["onnx"]
    for name in (name for names in GROUPS.values() for name in names):
        assert any(line["name"].startswith(name) for line in report["lines"]), name
        assert f"| {name}" in run.stdout, name
    assert not [path for path in tmp_path.iterdir() if path != out]
