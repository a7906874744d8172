"""BatchNormalization and InstanceNormalization across their versions.

What tells training from inference changed twice: the attribute is_test (up to 6), the number of outputs (7 to 13), the
attribute training_mode (since 14). Training is written out as plain operators on the way down, since the versions of 7
to 13 do not say which variance they take.

Source: the page of BatchNormalization (1, 6, 7, 9, 14, 15).
"""

from __future__ import annotations

from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.registry import Outcome, lowers, raises
from reducelower.errors import RefusedError


def _outputs(node: NodeProto) -> int:
    """How many outputs the node asks for."""
    return max((index + 1 for index, name in enumerate(node.output) if name), default=0)


def _in_training(op: Writer) -> list[NodeProto]:
    """Normalize by the statistics of the batch, and move the running ones; for opset 13 or 14.

    Written as in the operator's page: population variance, running = running * momentum + current * (1 - momentum).
    All is computed in the type of the data, of scale and bias, or in float, as the page asks of the statistics of
    narrower data: in the widest of the three.
    """
    data, scale, bias, mean, variance = op.node.input[:5]
    own_type, parameter_type = (op.scope.needed_element_type(name) for name in (data, scale))
    element_type = max((own_type, parameter_type, TensorProto.FLOAT), key=lambda found: _WIDTH.get(found, 0))
    data = op.cast(data, own_type, element_type, "wide")
    rank = op.rank(0)
    axes = [0, *range(2, rank)]
    current, deviation, spread = _statistics(op, data, axes)
    epsilon = op.constant(op.attribute("epsilon", 1e-5), element_type, "epsilon")
    root = op.add("Sqrt", op.add("Add", spread, epsilon, tail="stabilized"), tail="root")
    momentum = float(op.attribute("momentum", 0.9))
    for output, running, batch in ((1, mean, current), (2, variance, spread)):
        if op.wants(output):
            running_type = op.scope.needed_element_type(running)
            flat = op.add("Squeeze", batch, op.integers(axes, "batch_axes"))
            flat = op.cast(flat, element_type, running_type, "cast")
            kept = op.add("Mul", running, op.constant(momentum, running_type, "momentum"), tail="kept")
            added = op.add("Mul", flat, op.constant(1.0 - momentum, running_type, "rest"), tail="added")
            op.yields("Add", kept, added, output=output)
    columns = []
    for name, tail in ((scale, "scale"), (bias, "bias")):
        name = op.cast(name, parameter_type, element_type, f"wide_{tail}")
        if rank > 2:
            axes_after = op.integers(list(range(1, rank - 1)), "spatial_axes")
            name = op.add("Unsqueeze", name, axes_after, tail=tail)
        columns.append(name)
    normalized = op.add("Div", deviation, root, tail="normalized")
    scaled = op.add("Mul", normalized, columns[0], tail="scaled")
    return op.yields_cast(op.add("Add", scaled, columns[1], tail="shifted"), element_type, own_type)


def _statistics(op: Writer, data: str, axes: list[int]) -> tuple[str, str, str]:
    """Append the mean of the batch, the deviations from it and their population variance; returns their names."""
    mean = op.add("ReduceMean", data, tail="batch_mean", axes=axes, keepdims=1)
    deviation = op.add("Sub", data, mean, tail="deviation")
    square = op.add("Mul", deviation, deviation, tail="square")
    return mean, deviation, op.add("ReduceMean", square, tail="batch_variance", axes=axes, keepdims=1)


def _of_one_type(op: Writer, parameters: tuple[int, ...]) -> Outcome:
    """Give data and parameters the same element type: the widest among them."""
    types = {index: op.scope.needed_element_type(op.node.input[index]) for index in (0, *parameters)}
    if len(set(types.values())) == 1:
        return None
    if _outputs(op.node) > 1:
        raise RefusedError("its inputs are of different element types, which opset 14 allows for one output only here")
    widest = max(types.values(), key=lambda found: _WIDTH.get(found, 0))
    inputs = [op.cast(name, types.get(index, types[0]), widest, "cast") for index, name in enumerate(op.node.input)]
    wide = op.add("BatchNormalization", *inputs, tail="wide", copied=op.node.attribute)
    return op.yields_cast(wide, widest, types[0])


_WIDTH: dict[int, int] = {TensorProto.FLOAT: 1, TensorProto.DOUBLE: 2}


@lowers("BatchNormalization", 15)
def _tie_scale(op: Writer) -> Outcome:
    """Since 15 scale and bias may be of another element type than the data."""
    if not _is_mixed(op, (1, 2)):
        return None
    is_training = op.attribute("training_mode", 0)
    return _in_training(op) if is_training else _of_one_type(op, (1, 2, 3, 4))


def _is_mixed(op: Writer, parameters: tuple[int, ...]) -> bool:
    """Whether parameters are known to be of another element type than the data."""
    data = op.scope.element_type(op.input(0))
    return any(op.scope.element_type(op.node.input[index]) not in (data, None) for index in parameters)


@lowers("BatchNormalization", 14)
def _lower_training_mode(op: Writer) -> Outcome:
    """Training is written out; the attribute goes, and inference has one output and one element type."""
    if op.attribute("training_mode", 0):
        return _in_training(op)
    if _outputs(op.node) > 1:
        raise RefusedError("it asks for running statistics without training_mode=1, which is not valid")
    op.drop("training_mode")
    del op.node.output[1:]
    return _of_one_type(op, (1, 2, 3, 4)) if _is_mixed(op, (1, 2, 3, 4)) else None


@raises("BatchNormalization", 14)
def _raise_training_mode(op: Writer) -> None:
    """Several outputs meant training."""
    if _outputs(op.node) <= 1:
        return
    for index in (3, 4):
        if op.wants(index):
            if op.scope.is_read(op.node.output[index]):
                raise RefusedError("its output saved_mean or saved_var is used, which opset 14 dropped")
            op.node.output[index] = ""
    op.set("training_mode", 1)


@lowers("BatchNormalization", 9)
def _lower_vector(op: Writer) -> None:
    """Since 9 data may be a vector."""
    if op.scope.rank(op.input(0)) == 1:
        raise RefusedError("its data is a vector, which BatchNormalization takes since opset 9")


@raises("BatchNormalization", 9)
def _raise_spatial(op: Writer) -> Outcome:
    """spatial=0 had one parameter per element of an instance: the instances are flattened to vectors and back."""
    if int(op.attribute("spatial", 1)) != 0:
        op.drop("spatial")
        return None
    if _outputs(op.node) > 1:
        raise RefusedError("it trains with spatial=0, which opset 9 dropped")
    flat = op.add("Flatten", op.input(0), tail="flat", axis=1)
    vector = op.integers([-1], "vector")
    parameters = [op.add("Reshape", name, vector) for name in op.node.input[1:5]]
    normal = op.add(
        "BatchNormalization", flat, *parameters, tail="normalized", epsilon=float(op.attribute("epsilon", 1e-5))
    )
    shape, known = op.add("Shape", op.input(0)), op.shape(0)
    if known is not None and all(known):
        return op.yields("Reshape", normal, shape)
    return op.yields_reshaped(normal, shape, op.element_type(0))


@lowers("BatchNormalization", 7)
def _lower_is_test(op: Writer) -> None:
    """One output means inference, which is_test said before 7."""
    op.set("is_test", int(_outputs(op.node) <= 1))


@raises("BatchNormalization", 7)
def _raise_is_test(op: Writer) -> Outcome:
    """is_test=0, the default, with one output normalizes by the batch all the same."""
    is_test = int(op.attribute("is_test", 0))
    op.drop("is_test")
    if is_test and _outputs(op.node) > 1:
        raise RefusedError("it asks for statistics with is_test=1, which is not valid")
    if is_test or _outputs(op.node) > 1:
        return None
    if int(op.attribute("spatial", 1)) == 0:
        raise RefusedError("it trains with spatial=0 (is_test=0), which opset 7 cannot express")
    return _legacy_training(op)


def _legacy_training(op: Writer) -> list[NodeProto]:
    """Normalize by the statistics of the batch alone; for opset 7."""
    data = op.input(0)
    axes = [0, *range(2, op.rank(0))]
    mean, _, variance = _statistics(op, data, axes)
    flat = [op.add("Squeeze", name, axes=axes) for name in (mean, variance)]
    epsilon = float(op.attribute("epsilon", 1e-5))
    return op.yields("BatchNormalization", data, *op.node.input[1:3], *flat, epsilon=epsilon)


@lowers("BatchNormalization", 6)
def _lower_consumed(op: Writer) -> None:
    """The first version requires an attribute without effect and takes images only."""
    _check_image(op)
    op.set("consumed_inputs", [0] * len(op.node.input))


@lowers("InstanceNormalization", 6)
def _check_image(op: Writer) -> None:
    rank = op.rank(0)
    if rank != 4:
        raise RefusedError(f"its data has rank {rank}, and {op.node.op_type} takes rank 4 before opset 6")
