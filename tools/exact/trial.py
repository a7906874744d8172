"""Test rules: run each against the operator it replaces, and measure the error.

A rule's body runs as a model-local function at its own opset version, in onnxruntime, or in onnx's reference evaluator
if onnxruntime has no kernel. `reductions` and `calls` provide inputs and compare results with exact
ones.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, defs, helper, numpy_helper

from reducelower.errors import RuleError
from reducelower.model.schemas import REDUCTIONS, element_type_name
from reducelower.model.text import one_line
from reducelower.rulebook.bindings import AXES
from reducelower.rulebook.book import Rule, RuleBook, bind
from reducelower.rulebook.validation import rule_types
from tools.exact.calls import calls, compare_call
from tools.exact.normalizations import NORMALIZATIONS
from tools.exact.reductions import compare_specimen, described, specimens
from tools.exact.ulp import LIMITS

__all__ = ["Trial", "has_truth", "try_operator", "try_rule"]


@dataclass(frozen=True)
class Trial:
    """One rule on one element type.

    Attributes:
        runtime: ``onnxruntime`` or ``onnx.reference``; empty if nothing ran.
        results: number of compared output elements.
        largest_error: largest error, in ULP of the larger of result and largest input; in units for integers.
        wrong: a sentence for each wrong result, at most `MOST_WRONG`.
    """

    rule: str
    op_type: str
    element_type: str
    runtime: str = ""
    results: int = 0
    largest_error: float = 0.0
    wrong: tuple[str, ...] = ()

    @property
    def outcome(self) -> str:
        """The outcome in words."""
        near = f"at most {self.largest_error:.3g} ULP off" if self.largest_error else "exact"
        off = "wrong" if self.wrong else near
        return f"{off}, {self.results} results in {self.runtime or 'no runtime'}"


MOST_WRONG = 10
"""How many wrong results a trial describes before it stops."""


def has_truth(op_type: str) -> bool:
    """Whether exact results of an operator are known here."""
    return op_type in REDUCTIONS or op_type in NORMALIZATIONS


def try_operator(book: RuleBook, op_type: str) -> Iterator[Trial]:
    """Try the rules for an operator that `has_truth`, on all their element types.

    Raises:
        RuleError: a rule is invalid.
    """
    for rule in book.rules(op_type):
        schema = defs.get_schema(op_type, rule.opset)
        for element_type in rule_types(rule.function, schema):
            if book.find(op_type, element_type, rule.claim.without) is rule:
                yield try_rule(rule, element_type)


def try_rule(rule: Rule, element_type: int, runtime: str = "onnxruntime") -> Trial:
    """Test one rule on one element type, in a runtime or, if that has no kernel, in the next one.

    For float16, onnxruntime computes many operators in float32.
    """
    op_type = rule.function.name
    tries = _normalization_tries if op_type in NORMALIZATIONS else _reduction_tries
    bench = _Bench(runtime)
    results, largest, wrong = 0, 0.0, []
    for attempt in tries(rule, element_type):
        try:
            output = bench.run(attempt)
        except RuleError as failure:
            wrong.append(f"{attempt.call}: {failure.reason}")
            break
        count, error, sentences = attempt.compare(output)
        results += count
        largest = max(largest, error)
        wrong += sentences
        if len(wrong) >= MOST_WRONG:
            break
    return Trial(
        rule=rule.name,
        op_type=op_type,
        element_type=element_type_name(element_type),
        runtime=bench.runtime,
        results=results,
        largest_error=largest,
        wrong=tuple(wrong[:MOST_WRONG]),
    )


@dataclass(frozen=True)
class _Try:
    """A call of a rule; calls of the same form share a session.

    It compares a result: number of elements, largest error, and a sentence for each wrong one.
    """

    call: str
    form: Hashable
    model: Callable[[], ModelProto]
    feeds: Mapping[str, np.ndarray[Any, Any]]
    compare: Callable[[np.ndarray[Any, Any]], tuple[int, float, list[str]]]


def _reduction_tries(rule: Rule, element_type: int) -> Iterator[_Try]:
    op_type = rule.function.name
    for specimen in specimens(op_type, element_type):
        attributes = {"keepdims": int(specimen.keepdims), "noop_with_empty_axes": int(specimen.noop)}
        yield _Try(
            described(specimen),
            (specimen.data.ndim, specimen.axes, specimen.keepdims, specimen.noop),
            partial(_model, rule, element_type, (specimen.data,), attributes, specimen.axes),
            {rule.function.input[0]: specimen.data},
            partial(compare_specimen, op_type, element_type, specimen),
        )


def _normalization_tries(rule: Rule, element_type: int) -> Iterator[_Try]:
    op_type = rule.function.name
    for call in calls(op_type, element_type):
        yield _Try(
            str(call),
            (call.inputs[0].ndim, tuple((name, str(value)) for name, value in call.attributes.items())),
            partial(_model, rule, element_type, call.inputs, call.attributes),
            dict(zip(rule.function.input, call.inputs, strict=True)),
            partial(compare_call, op_type, element_type, call, limit=LIMITS.get(element_type, 0.0)),
        )


def _model(
    rule: Rule,
    element_type: int,
    values: Sequence[np.ndarray[Any, Any]],
    attributes: Mapping[str, Any],
    axes: Sequence[int] | None = None,
) -> ModelProto:
    """A model whose only node calls a rule, on inputs of open shapes.

    `values` are those of the first inputs. `axes` follow as an initializer, unless None.
    """
    function = rule.function
    names = function.input[: len(values)]
    rest = [] if len(names) == len(function.input) else ["" if axes is None else "axes"]
    initializers = [] if axes is None else [numpy_helper.from_array(np.array(axes, np.int64), "axes")]
    node = helper.make_node(
        function.name, [*names, *rest], [function.output[0]], domain=function.domain, overload=function.overload
    )
    for name, value in attributes.items():
        if name in function.attribute:
            node.attribute.append(helper.make_attribute(name, value))
    for name in rule.axes:
        bound = AXES[name].of(attributes.get("axis", -1), lambda: values[0].ndim)
        node.attribute.append(helper.make_attribute(name, bound))
    if "stash_type" in function.attribute:
        node.attribute.append(helper.make_attribute("stash_type", TensorProto.FLOAT))
    node.attribute.extend(bind(rule, element_type).values())
    inputs = [
        helper.make_tensor_value_info(name, element_type, [f"{name}{axis}" for axis in range(value.ndim)])
        for name, value in zip(names, values, strict=True)
    ]
    outputs = [helper.make_tensor_value_info(function.output[0], element_type, None)]
    graph = helper.make_graph([node], "rule", inputs, outputs, initializers)
    imports = [helper.make_opsetid("", rule.opset), helper.make_opsetid(function.domain, 1)]
    return helper.make_model(graph, functions=[function], opset_imports=imports, ir_version=10)


class _Bench:
    """Runs one rule on one element type, with a session per form of the call."""

    def __init__(self, runtime: str) -> None:
        self.runtime = runtime
        self._sessions: dict[Hashable, Any] = {}

    def run(self, attempt: _Try) -> np.ndarray[Any, Any]:
        """The rule's result from the first runtime that can run it; following calls use the same runtime."""
        try:
            with np.errstate(all="ignore"):
                return np.asarray(self._session(attempt).run(None, attempt.feeds)[0])
        except Exception as error:
            if self.runtime == _RUNTIMES[-1]:
                raise RuleError(f"does not run: {one_line(error)[:300]}") from None
        self.runtime = _RUNTIMES[-1]
        self._sessions.clear()
        return self.run(attempt)

    def _session(self, attempt: _Try) -> Any:
        if attempt.form not in self._sessions:
            self._sessions[attempt.form] = _OPEN[self.runtime](attempt.model())
        return self._sessions[attempt.form]


def _onnxruntime_session(model: ModelProto) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def _reference_session(model: ModelProto) -> Any:
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(model)


_OPEN = {"onnxruntime": _onnxruntime_session, "onnx.reference": _reference_session}
_RUNTIMES = tuple(_OPEN)
"""Runtimes in the order in which they are tried."""
