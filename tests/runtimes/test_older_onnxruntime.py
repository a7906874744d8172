"""What is brought to an older opset version loads in the onnxruntime of its time.

REDUCELOWER_ONNXRUNTIME_1_16 names a Python that has onnxruntime 1.16 (``pip install "onnxruntime==1.16.3" "numpy<2"``
in an environment of its own); without it these tests are skipped.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import onnx
import pytest

import reducelower
from reducelower.batch import Settings, Task, convert_file
from reducelower.options import Target
from reducelower.runtimes import load_runtime

PYTHON = os.environ.get("REDUCELOWER_ONNXRUNTIME_1_16", "")
README = Path(__file__).parents[1] / "data" / "readme" / "layernorm_18.onnx"
"""The model of the README's first example, as torch writes it."""

needs_it = pytest.mark.skipif(not PYTHON, reason="REDUCELOWER_ONNXRUNTIME_1_16 names no Python that has it")

LOAD = """
import json, sys
import numpy as np
import onnxruntime
assert onnxruntime.__version__.startswith("1.16."), onnxruntime.__version__
found = {}
for path in sys.argv[1:]:
    try:
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        given = session.get_inputs()
        feeds = {}
        for item in given:
            shape = [size if isinstance(size, int) else 3 for size in item.shape]
            kinds = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(bool)": bool}
            feeds[item.name] = np.ones(shape, kinds.get(item.type, np.int64))
        found[path] = [np.asarray(value).ravel()[:8].tolist() for value in session.run(None, feeds)]
    except Exception as error:
        found[path] = str(error)
print(json.dumps(found))
"""


def loaded(*paths: Path) -> Any:
    """What that onnxruntime gives for all inputs 1, or says, of each model."""
    ran = subprocess.run([PYTHON, "-c", LOAD, *map(str, paths)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


def test_the_models_of_torch_have_a_newer_ir_version_than_it_reads() -> None:
    assert onnx.load(README).ir_version == 10


@needs_it
def test_the_readmes_model_at_opset_13_loads_there(tmp_path: Path) -> None:
    onnx.save(reducelower.convert_version(onnx.load(README), 13), tmp_path / "model13.onnx")
    found = loaded(README, tmp_path / "model13.onnx")
    assert "Unsupported model IR version: 10" in found[str(README)]
    assert found[str(tmp_path / "model13.onnx")] == [[0.0] * 8]  # the normalization of eight ones


@needs_it
@pytest.mark.parametrize("target", [13, 17, "runtime"])
def test_whatever_exporters_write_loads_there(target: int | str, models: Path, tmp_path: Path) -> None:
    goal = Target(runtime=load_runtime("onnxruntime@1.16")) if target == "runtime" else Target(int(target))
    outputs = []
    for path in [README, *sorted(models.glob("*.onnx"))]:
        outcome = convert_file(Task(str(path), str(tmp_path / path.name)), Settings(goal, verify=False))
        assert outcome.output, outcome.problems
        outputs.append(tmp_path / path.name)
    wrong = {Path(path).name: said for path, said in loaded(*outputs).items() if isinstance(said, str)}
    assert not wrong
