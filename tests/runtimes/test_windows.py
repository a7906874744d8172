"""Convolutions, pools, products and recurrences that a runtime gets wrong are written otherwise, with the same numbers.

The numbers are those of onnxruntime's kernels for what is replaced.
"""

from __future__ import annotations

import pytest

from reducelower import Target, check
from tests.runtimes.test_forms import model
from tests.runtimes.toaster import runtime

POOL = "z = MaxPool <kernel_shape = [{}], strides = [2], ceil_mode = 1> (x)"
CONVOLUTION = "z = Conv <kernel_shape = [3,3]> (x, y)"
DILATED = "z = MaxPool <kernel_shape = [2,2]{}> (x)"


@pytest.mark.parametrize(
    ("body", "inputs", "when", "is_true"),
    [
        (POOL.format(1), "float[1,1,2] x", "overhangs = true", True),
        (POOL.format(3), "float[1,1,6] x", "overhangs = true", False),
        ("z = PRelu (x, y)", "float[2,3,4] x, float[3,1] y", "per_channel = false", False),
        ("z = PRelu (x, y)", "float[2,3,4] x, float[4] y", "per_channel = false", True),
        ("z = Softmax (x)", "float[2,3] x", "attributes = ['!axis']", True),
        ("z = Softmax <axis = -1> (x)", "float[2,3] x", "attributes = ['!axis']", False),
        (CONVOLUTION, "float[1,4,1,5] x, float[4,1,3,3] y", "thin = true", True),
        (CONVOLUTION, "float[1,4,2,5] x, float[4,1,3,3] y", "thin = true", False),
        (CONVOLUTION, "float[1,1,1,5] x, float[4,1,3,3] y", "thin = true", False),
        (CONVOLUTION, "float[1,4,1,5] x, float[4,2,3,3] y", "thin = true", False),
        (DILATED.format(", dilations = [2,2]"), "float[1,1,5,5] x", "attributes = ['dilations!=1']", True),
        (DILATED.format(", dilations = [1,1]"), "float[1,1,5,5] x", "attributes = ['dilations!=1']", False),
        (DILATED.format(""), "float[1,1,5,5] x", "attributes = ['dilations!=1']", False),
        ("z = Clip (x,, y)", "float[2] x, float y", "inputs = '3'", True),
        ("z = Clip (x, y)", "float[2] x, float y", "inputs = '3'", False),
        ("z, i = TopK <axis = 0> (x, y)", "float[2] x, int64[1] y", "first_read = false", False),
        ("i, z = TopK <axis = 0> (x, y)", "float[2] x, int64[1] y", "first_read = false", True),
        ("z, i = Split <num_outputs = 2, axis = 0> (x)", "float[5] x", "uneven = true", True),
        ("z, i = Split <num_outputs = 2, axis = 0> (x)", "float[6] x", "uneven = true", False),
        ("z = Relu (x)", "float[2] x", "yielded = true", True),
        ("y = Relu (x) z = Abs (y)", "float[2] x", "yielded = true", False),
        ("z = Add (x, y)", "float[2] x, float[2] y", "last = ['initializer']", False),
        ("z = Pow (x, y)", "float[2] x, uint32[2] y", "second_types = ['uint32']", True),
        ("z = Pow (x, y)", "float[2] x, int32[2] y", "second_types = ['uint32']", False),
        ("z = Add (y, x)", "float[2] x, float[2] y", "last = ['fed']", True),
    ],
)  # fmt: skip
def test_what_facts_ask_for(body: str, inputs: str, when: str, is_true: bool) -> None:
    op_type = body.partition("= ")[2].partition(" ")[0]
    kind = "int64" if "i, z" in body else "float"
    source = model(f"{{ {body} }}", f"{kind}{_shape(inputs)} z", inputs, 18)
    told = "\n".join([f"operators = ['{op_type}']", "is = 'overflows'", f"when = {{ {when} }}"])
    plan = check(source, target=Target(18, runtime=runtime(told)))
    assert bool(plan.unmended or plan.sites) == is_true


def _shape(inputs: str) -> str:
    """A shape of named sizes with as many dimensions as the data."""
    count = inputs.partition("]")[0].count(",") + 1
    return f"[{', '.join('abcdefg'[:count])}]"
