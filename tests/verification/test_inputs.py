from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from reducelower.verification.feeding.filling import Filling, sprinkled
from reducelower.verification.feeding.limits import Limits
from reducelower.verification.feeding.sets import Sets
from reducelower.verification.feeding.sizes import ladder
from reducelower.verification.inputs.declared import InputSpec, at_sizes, input_specs, named, shape_at
from tests.models import model

SPECS = (
    InputSpec("a", TensorProto.FLOAT, ("batch", 3, None)),
    InputSpec("b", TensorProto.FLOAT, (None, "seq", None)),
)


DIMS = named(SPECS)


def test_every_free_size_has_a_name() -> None:
    assert DIMS == {"a": ("batch", 3, "axis 2"), "b": ("axis 0", "seq", "axis 2")}
    for sizes in ladder(DIMS, {}):
        assert shape_at(DIMS["a"], sizes) == (sizes["batch"], 3, sizes["axis 2"])


def test_placeholders_are_no_names() -> None:
    made = model('(float["?","None",3] x) => (float["?","None",3] y) { y = Neg (x) }')
    assert named(input_specs(made)[0]) == {"x": ("axis 0", "axis 1", 3)}
    assert input_specs(at_sizes(made, {"axis 1": 5}))[0][0].dims == (None, 5, 3)


def test_the_first_sizes_tell_symbols_apart_and_others_are_all_ones() -> None:
    first, *others = ladder(DIMS, {})
    assert len(set(first.values())) == len(first)
    assert any(set(sizes.values()) == {1} for sizes in others)


def test_fixed_sizes_hold_in_all() -> None:
    assert {sizes["seq"] for sizes in ladder(DIMS, {"seq": 7})} == {7}
    assert list(ladder(named([InputSpec("a", 1, (2,))]), {})) == [{}]


@pytest.mark.parametrize("rank", [5, 6, 12, 24, 60])
def test_no_input_of_free_sizes_is_beyond_memory(rank: int) -> None:
    """60 along each of five axes were 3 GB; of data of sixteen, no sizes could be fed."""
    spec = InputSpec("a", TensorProto.FLOAT, tuple(f"d{axis}" for axis in range(rank)))
    sizes = list(ladder(named([spec]), {}))
    assert dict.fromkeys(sizes[0], 1) in sizes
    assert len(set(sizes[0].values())) > 3
    assert all(math.prod(each.values()) <= 20_000_000 for each in sizes)


MOST_AXES = 64 if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else 32


@pytest.mark.parametrize("rank", [6, 10, 16, 60])
def test_a_region_is_fed_few_elements_at_any_rank(rank: int) -> None:
    """Ten axes were fed 300 million."""
    if rank > MOST_AXES:
        pytest.skip(f"arrays of the installed numpy have {MOST_AXES} axes at most")
    spec = InputSpec("x", TensorProto.FLOAT, tuple(f"N{axis}" for axis in range(rank)))
    cases = list(Sets([spec], Limits())(lambda feeds: True, lambda feeds: True))
    shapes = {case.feeds["x"].shape for case in cases}
    assert all(len(shape) == rank and math.prod(shape) <= 4_000_000 for shape in shapes)
    assert {0, 1} < {shape[0] for shape in shapes}


@pytest.mark.parametrize("count", [2, 20, 60, 600])
def test_very_many_operands_are_not_all_varied_alone(count: int) -> None:
    """The sets of 300 operands held 600,000 arrays."""
    specs = [InputSpec(f"x{at}", TensorProto.FLOAT, (2,)) for at in range(count)]
    cases = list(Sets(specs, Limits())(lambda feeds: True, lambda feeds: True))
    alone = {case.label.split("input ")[1].split()[0] for case in cases if "values in input" in case.label}
    assert len(alone) == count if count <= 20 else 1 <= len(alone) < 20
    assert all(case.feeds.keys() == {spec.name for spec in specs} for case in cases)


def drawn(element_type: int, kind: str, seed: int = 0) -> np.ndarray:
    filling = Filling(InputSpec("x", element_type, ("N",)), Limits())
    return filling.values(kind, (2, 300), np.random.default_rng(seed))


def test_the_same_seed_gives_the_same_values() -> None:
    assert (drawn(TensorProto.FLOAT, "random", 3) == drawn(TensorProto.FLOAT, "random", 3)).all()


@pytest.mark.parametrize("element_type", [number for number in TensorProto.DataType.values() if number])
def test_every_element_type_has_values_of_every_kind(element_type: int) -> None:
    for kind in Filling(InputSpec("x", element_type, ("N",)), Limits()).kinds:
        values = drawn(element_type, kind)
        assert (values.shape, values.dtype) == ((2, 300), helper.tensor_dtype_to_np_dtype(element_type))


@pytest.mark.parametrize("element_type", [TensorProto.INT8, TensorProto.INT64, TensorProto.UINT8, TensorProto.UINT64])
def test_integers_are_small_and_not_negative(element_type: int) -> None:
    array = drawn(element_type, "random")
    assert (array.min(), array.max()) == (0, 9)


def test_inputs_with_an_initializer_are_left_to_it() -> None:
    body = "g (float[N] x, float[1] w = {1.0}) => (float[N] y) { y = Mul (x, w) }"
    specs, skipped = input_specs(model(body))
    assert [spec.name for spec in specs] == ["x"]
    assert not skipped


@pytest.mark.parametrize("shape", [(2,), (1, 3), (2, 4)])
def test_infinities_of_both_signs_stand_among_a_few_elements(shape: tuple[int, ...]) -> None:
    for seed in range(20):
        drawn = sprinkled([np.inf, -np.inf])(shape, np.random.default_rng(seed))
        assert drawn.shape == shape
        assert {np.inf, -np.inf} <= set(drawn.flat)
    assert sprinkled([np.nan])((0, 3), np.random.default_rng(0)).shape == (0, 3)
    assert np.isinf(sprinkled([np.inf, -np.inf])((), np.random.default_rng(0)))


@pytest.mark.parametrize(
    ("dims", "shapes", "takes"),
    [
        # A convolution of groups: there are as many channels as weights, and two go together.
        (
            [(1, "c", "s", "s"), ("c", 1, 3, 3)],
            [(1, 40, 320, 320), (40, 1, 3, 3)],
            lambda x, w: x.shape[1] == w.shape[0] and x.shape[1] % 8 == 0 and x.shape[2] >= 3,
        ),
        # A window over a long signal.
        ([("b", "n"), ("w",)], [(3, 48000), (400,)], lambda x, w: x.shape[1] >= w.shape[0] >= 400),
    ],
)
def test_most_sets_have_few_values_where_the_data_is_large(
    dims: list[tuple[int | str, ...]], shapes: list[tuple[int, ...]], takes: Callable[..., bool]
) -> None:
    specs = [InputSpec(name, TensorProto.FLOAT, each) for name, each in zip("xw", dims, strict=True)]
    sample = {name: np.ones(shape, np.float32) for name, shape in zip("xw", shapes, strict=True)}

    def accepts(feeds: Mapping[str, Any]) -> bool:
        return takes(feeds["x"], feeds["w"])

    cases = list(Sets(specs, Limits(), [sample])(accepts, accepts))
    assert len(cases) > 20
    assert sum(case.feeds["x"].size < 10_000 for case in cases) > 0.8 * len(cases)
