"""Names and versions as people type them."""

from __future__ import annotations

import pytest

from reducelower import Target, check, load_runtime
from reducelower.runtimes import TargetError, shipped_names
from reducelower.runtimes.names import target_named, unknown
from tests.runtimes.test_shipped import reduction


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("ort", "onnxruntime"),
        ("onnxruntime-gpu", "onnxruntime"),
        ("winml", "onnxruntime"),
        ("directml", "onnxruntime-directml"),
        ("WebNN", "onnxruntime-webnn"),
        ("ov", "openvino"),
        ("OpenVINO", "openvino"),
        ("cv2", "opencv"),
        ("opencv-python", "opencv"),
        ("opencv_python", "opencv"),
        ("opencv-python-headless", "opencv"),
        ("litert", "tflite"),
        ("tensorflow-lite", "tflite"),
        ("coremltools", "coreml"),
        ("snpe", "qnn"),
        ("cann", "ascend"),
        ("trt", "tensorrt"),
        ("apache-tvm", "tvm"),
        ("rknn-toolkit2", "rknn"),
    ],
)
def test_a_runtime_goes_by_the_names_of_its_packages(written: str, meant: str) -> None:
    assert load_runtime(written).name == meant


@pytest.mark.parametrize("name", ["hailo", "vitis", "stm32", "executorch", "armnn", "openvno", "tensorr"])
def test_an_unknown_name_gets_no_other_runtime_suggested(name: str) -> None:
    with pytest.raises(TargetError) as caught:
        load_runtime(name)
    assert "did you mean" not in str(caught.value)
    assert "`reducelower probe` measures any other runtime" in str(caught.value)
    assert all(known in str(caught.value) for known in shipped_names())


def test_every_name_means_a_target_that_there_is() -> None:
    from reducelower.runtimes import names

    assert set(names._ALIASES) <= set(shipped_names())
    assert not set(names._MEANT) & set(shipped_names())


@pytest.mark.parametrize(
    ("written", "version", "note"),
    [
        ("onnxruntime==1.16", "1.16", ""),
        ("onnxruntime@v1.16", "1.16", ""),
        ("ort == 1.16.3", "1.16.3", ""),
        ("onnxruntime@1", "1.32", ""),
        ("openvino@2026", "2026.4.1", ""),
        ("openvino@2026.4", "2026.4.1", ""),
        ("opencv@5", "5.0.0", ""),
        ("opencv-python==4.10.0.84", "4.10.0.84", ""),
        ("opencv@4", "4.14", ""),
        ("opencv@4.12", "4.12", "opencv 4.12 was not measured; facts of 4.10 and 4.14."),
        ("opencv@4.9", "4.9", "opencv 4.9 was not measured; facts of 4.10, the oldest that was."),
        ("onnxruntime-directml==1.24.4", "1.24.4", ""),
        ("mnn@3", "3.6.1", ""),
        ("mnn@3.5", "3.5", "mnn 3.5 was not measured; facts of 3.6.1, the oldest that was."),
        ("tract@0.22", "0.22", "tract 0.22 was not measured; facts of 0.23.9, the oldest that was."),
        ("tract@0.23", "0.23.9", ""),
        ("rknn@2.5", "2.5.0", ""),
        ("tvm@0", "0.27.0", ""),
    ],
)
def test_any_version_of_a_runtime_is_taken(written: str, version: str, note: str) -> None:
    found = load_runtime(written)
    assert (found.version, found.note) == (version, note)


def test_between_two_versions_the_facts_of_both_are_true() -> None:
    sides = [load_runtime(f"opencv@{version}") for version in ("4.14", "5.0.0")]
    found = load_runtime("opencv@4.20")
    assert set(found.facts) == {*sides[0].facts, *sides[1].facts}


def test_an_outcome_says_that_a_version_was_not_measured() -> None:
    plan = check(reduction("ReduceSum", 13), target=Target(runtime=load_runtime("opencv@4.12")))
    assert plan.notes[0] == "opencv 4.12 was not measured; facts of 4.10 and 4.14."


def test_an_alias_is_spelled_in_any_case_and_with_either_dash() -> None:
    assert target_named(" Opencv_Contrib_Python ") == "opencv"


def test_what_is_unknown_is_told_in_a_sentence() -> None:
    assert unknown(["a", "b"]).startswith("no target has this name; there are a, b. ")
