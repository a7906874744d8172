"""The target files that come with the package: what they say is what their sources say."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, defs, helper, parser

from reducelower import ConversionError, Target, legalize
from reducelower.model.schemas import REDUCTIONS, versions
from reducelower.runtimes import Runtime, load_runtime, shipped_names, shipped_versions
from reducelower.runtimes.kinds import LATER

DOCUMENTED = ("ascend", "coreml", "tensorrt", "tidl")

RELEASES = [f"1.{minor}" for minor in range(32)]

SAID = tomllib.loads(Path(__file__).with_name("shipped.toml").read_text("utf-8"))
BUILT_WITH, CANN = SAID["built_with"], SAID["cann"]


def newest(runtime: Runtime) -> int:
    return max(opset for opset in range(1, 100) if opset in runtime.reads)


def model(body: str, opset: int, element: str = "float") -> ModelProto:
    return parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : {opset}]>
        g ({element}[2,3,4] x) => (y) <int64[1] one = {{1}}> {{ {body} }}
    """)


def reduction(op_type: str, opset: int, element: str = "float") -> ModelProto:
    """The operator over axis 1, with the axes in the opset version's own form."""
    has_attribute = "axes" in defs.get_schema(op_type, opset, "").attributes
    call = f"{op_type} <axes = [1]> (x)" if has_attribute else f"{op_type} (x, one)"
    return model(f"y = {call}", opset, element)


@cache
def types_of(op_type: str, opset: int) -> frozenset[str]:
    (constraint,) = (
        each for each in defs.get_schema(op_type, opset, "").type_constraints if each.type_param_str == "T"
    )
    return frozenset(each[len("tensor(") : -1] for each in constraint.allowed_type_strs)


def is_taken(source: ModelProto, target: str) -> bool:
    """Whether a model of one node stays as it is at its opset version."""
    opset = source.opset_import[0].version
    try:
        fitted = legalize(source, Target(opset, runtime=load_runtime(target))).model
    except ConversionError:
        return False
    return list(fitted.graph.node) == list(source.graph.node)


# Every file


@pytest.mark.parametrize("name", shipped_names())
def test_a_shipped_file_is_named_after_its_runtime(name: str) -> None:
    runtime = load_runtime(name)
    assert runtime.name == name
    assert runtime.about
    assert runtime.facts
    assert runtime.prefer in runtime.reads


@pytest.mark.parametrize("name", shipped_names())
def test_every_fact_is_a_sentence(name: str) -> None:
    for fact in load_runtime(name).facts:
        assert fact.says.endswith("."), fact.says


@pytest.mark.parametrize("name", DOCUMENTED)
def test_a_documented_target_has_documented_facts_only(name: str) -> None:
    for fact in load_runtime(name).facts:
        assert fact.evidence.documented.startswith("https://"), fact.says
        assert not fact.evidence.measured


@pytest.mark.parametrize("name", shipped_names())
def test_a_documented_fact_names_release_and_date(name: str) -> None:
    for version in shipped_versions(name):
        for fact in load_runtime(f"{name}@{version}" if version else name).facts:
            assert fact.evidence.measured or (fact.evidence.release and fact.evidence.on), fact.says
            assert "/main/" not in fact.evidence.documented


@pytest.mark.parametrize("name", shipped_names())
def test_a_shipped_file_is_read_where_onnx_does_not_know_every_operator(name: str) -> None:
    """As with onnx 1.22, the oldest that the package works with, which knows opset versions up to 27."""
    named = {op_type for fact in load_runtime(name).facts for op_type in fact.operators if "*" not in op_type}
    assert named
    assert {op_type for op_type in named if min(versions(op_type), default=28) > 27} <= LATER


# onnxruntime


def test_releases_of_onnxruntime_never_read_less_than_the_one_before() -> None:
    read = [load_runtime(f"onnxruntime@{release}") for release in RELEASES]
    opsets = [newest(runtime) for runtime in read]
    ir_versions = [runtime.ir_version for runtime in read]
    assert opsets == sorted(opsets)
    assert ir_versions == sorted(ir_versions)
    assert all(7 in runtime.reads and 6 not in runtime.reads for runtime in read)


@pytest.mark.parametrize("release", BUILT_WITH)
def test_a_release_of_onnxruntime_reads_what_its_table_says(release: str) -> None:
    onnx_release, ir_version = BUILT_WITH[release]
    # Rows of onnx's table: release, IR version, opset version, those of other domains.
    opset = next(row[2] for row in helper.VERSION_TABLE if row[0] == onnx_release)
    runtime = load_runtime(f"onnxruntime@{release}")
    assert (newest(runtime), runtime.prefer, runtime.ir_version) == (opset, opset, ir_version)
    assert str(runtime) == f"onnxruntime {release}"


def is_loaded(source: ModelProto) -> bool:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        onnxruntime.InferenceSession(source.SerializeToString(), options)
    except Exception:  # onnxruntime has no common class of its errors.
        return False
    return True


def installed() -> Runtime:
    release = onnxruntime.__version__.rpartition(".")[0]
    if release not in RELEASES:
        pytest.skip(f"no entry for onnxruntime {release}")
    return load_runtime(f"onnxruntime@{release}")


def test_the_installed_onnxruntime_reads_what_its_entry_says() -> None:
    runtime = installed()
    plain = model("y = Relu(x)", newest(runtime))
    assert is_loaded(plain)
    plain.opset_import[0].version += 1
    assert not is_loaded(plain)
    plain.opset_import[0].version -= 1
    assert runtime.ir_version is not None
    plain.ir_version = runtime.ir_version
    assert is_loaded(plain)
    plain.ir_version += 1
    assert not is_loaded(plain)


@pytest.mark.parametrize("opset", [11, 13, 17, 18, 19, 20])
@pytest.mark.parametrize("op_type", REDUCTIONS)
def test_reductions_that_onnxruntime_cannot_load_are_the_ones_listed(op_type: str, opset: int) -> None:
    if onnxruntime.__version__ != load_runtime("onnxruntime").version:
        pytest.skip("the facts are about another version")
    for element in types_of(op_type, opset):
        source = reduction(op_type, opset, element)
        if op_type == "ReduceLogSumExp" and opset == 18:
            assert is_loaded(source)  # Where there is no kernel by the function body, which is wrong.
            expected = element not in ("uint32", "uint64", "bfloat16")
        else:
            expected = is_loaded(source)
        facts = [fact for fact in load_runtime("onnxruntime").facts if fact.outcome in ("absent", "wrong")]
        listed = any(fact.concerns(op_type, opset) and element in (fact.when.element_types or ()) for fact in facts)
        assert listed != expected, element


@pytest.mark.parametrize("op_type", ["ReduceL2", "ReduceLogSum"])
@pytest.mark.parametrize(("element", "dtype"), [("float", np.float32), ("double", np.float64)])
def test_for_onnxruntime_large_values_do_not_overflow(op_type: str, element: str, dtype: type[np.generic]) -> None:
    source = reduction(op_type, 18, element)
    fitted = legalize(source, Target(runtime=load_runtime("onnxruntime"))).model
    x = np.full((2, 3, 4), 0.9 * np.finfo(dtype).max / (2 if op_type == "ReduceL2" else 1), dtype)
    (result,) = onnxruntime.InferenceSession(fitted.SerializeToString()).run(None, {"x": x})
    size = x.astype(np.longdouble)
    exact = np.sqrt(3) * size[:, :1] if op_type == "ReduceL2" else np.log(size[:, :1]) + np.log(3)
    np.testing.assert_allclose(result, exact, rtol=1e-6)


def test_clip_in_double_is_brought_to_an_opset_where_onnxruntime_has_it() -> None:
    source = model("lo = Constant <value = double {0.0}> () y = Clip(x, lo)", 11, "double")
    assert not is_loaded(source)
    fitted = legalize(source, Target(runtime=load_runtime("onnxruntime"))).model
    assert is_loaded(fitted)


# Documented targets


@pytest.mark.parametrize("opset", [9, 11, 12, 13, 16, 17, 18])
@pytest.mark.parametrize("op_type", CANN)
def test_for_ascend_a_reduction_stays_where_cann_lists_its_type_and_opset(op_type: str, opset: int) -> None:
    types, opsets = CANN[op_type]
    for element in types_of(op_type, opset):
        taken = is_taken(reduction(op_type, opset, element), "ascend")
        assert taken == (opset in opsets and element in types.split()), element


@pytest.mark.parametrize("op_type", REDUCTIONS)
def test_for_ascend_axes_are_listed_where_cann_takes_none_for_no_axis(op_type: str) -> None:
    needs_axes = op_type in ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum")
    assert is_taken(model(f"y = {op_type} (x)", 16), "ascend") != needs_axes


@pytest.mark.parametrize(
    ("target", "absent"),
    [
        # Core ML has no Abs, Log and Min either, which the others are made of.
        ("coreml", {"ReduceL2", "ReduceProd", "ReduceSumSquare"}),
        # These three overflow there.
        ("tensorrt", {"ReduceL2", "ReduceLogSum", "ReduceLogSumExp"}),
    ],
)
def test_reductions_that_a_target_takes_in_float(target: str, absent: set[str]) -> None:
    assert {op_type for op_type in REDUCTIONS if not is_taken(reduction(op_type, 13), target)} == absent
    assert {op_type for op_type in REDUCTIONS if not is_taken(reduction(op_type, 18), target)} == absent


@pytest.mark.parametrize(
    ("target", "op_type", "taken"),
    [
        ("coreml", "ReduceSum", "float16 float int32 int64 uint32 uint64 bfloat16"),
        ("tensorrt", "ReduceMax", "float16 float bfloat16 int32 int64"),
        ("tensorrt", "ReduceSum", "float16 float bfloat16 int32 int64"),
    ],
)
def test_element_types_that_a_target_takes(target: str, op_type: str, taken: str) -> None:
    found = {element for element in types_of(op_type, 18) if is_taken(reduction(op_type, 18, element), target)}
    assert found == set(taken.split())


@pytest.mark.parametrize("opset", [17, 18, 20])
def test_onnxruntime_overflows_in_float16_at_opset_18_only(opset: int) -> None:
    """Values whose logarithm of the sum of exponentials is 1000.3, by the identity that subtracts the maximum."""
    source = model("y = ReduceLogSumExp <keepdims = 1> (x)", opset, "float16")
    x = np.full((2, 3, 4), 0, np.float16)
    x[0, 0, :2] = [1000, 999]
    as_it_is = onnxruntime.InferenceSession(source.SerializeToString()).run(None, {"x": x})[0]
    fitted = legalize(source, Target(opset, runtime=load_runtime("onnxruntime"))).model
    assert (fitted.graph.node[0].op_type == "ReduceLogSumExp") == bool(np.isfinite(as_it_is).all())
    found = onnxruntime.InferenceSession(fitted.SerializeToString()).run(None, {"x": x})[0]
    np.testing.assert_allclose(found.ravel(), [1000 + np.log1p(np.exp(-1.0))], rtol=1e-3)
