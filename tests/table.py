"""Tables of cases: the text of nodes, what they are given, and what numpy says they yield once they are rewritten.

A table is a file in TOML, a row is named by its claim::

    ["small integers wrap as they do in numpy"]
    nodes = "y = $op (a, b)"
    from = 14
    to = [13, 9]
    each.op = ["Add", "Sub"]
    each."dtype, most" = [["int8", 127], ["uint8", 255]]
    let.other = "array([1, 2], dtype)"
    given.a = "array([most, 0], dtype)"
    given.b = "other[::-1]"
    gives.y = "{'Add': add, 'Sub': subtract}[op](a, b)"
    becomes = ["Cast", "Cast", "$op", "Cast"]

Its fields:

- ``nodes``: the nodes in ONNX text; ``from``: the opset version of the model; ``to``: those it is converted to.
- ``graph``: in place of ``nodes``, all that stands behind the name of a graph: inputs, outputs, initializers, nodes.
  ``functions``: functions of the domain local; ``imports``: versions of other domains; ``ir``: the IR version, or it
  is 8; ``unchecked``: true of a graph that the checker refuses and runtimes take.
- ``without``: operators that are not to remain; ``without_types``: element types that nothing added computes in;
  ``options``: further arguments of `legalize`, such as ``options.ranks = { x = 3 }``.
- ``facts``: what is true of the runtime that it is fitted to, each as in a target file, or ``runtime``: the name of a
  shipped one; it may choose the opset version unless there is a ``to``.
- ``each``: parameters and their values. They are filled into texts at ``$name``, and are names in expressions. Every
  two values of different parameters meet, ``to`` among these. One that is called like a field stands for it. Two
  parameters that choose a rewrite together are one, of pairs, so that each pair meets every version.
- ``let``: names for expressions; ``given``: the values that the nodes read, or of which a graph takes some. Expressions
  are Python, and have the names of numpy, the parameters, and what stands above.
- ``constants``: those given that are initializers, not inputs; ``ranked``: inputs of which only the rank is stated;
  ``stated``: the sizes that are stated of others, numbers and names.
- ``gives``: what is expected of each output. Where it is left out, outputs are to be what the source yields. Where a
  row gives nothing to run a ``graph`` with, it is not run.
- ``becomes``: the operators of the main graph afterwards; ``most``: how many nodes it has at most; ``uses``: some in
  any graph or function, ``never``: some that are in none. ``keeps``: the names of the initializers;
  ``functions_left``: those of the functions; ``noted``: a part of a note of the plan; ``chooses``: the opset version
  that a runtime is given. ``holds``: expressions that are true of the ``source``, of what is ``made`` of it, and of
  the ``plan``.
- ``refused``: a part of the reason why it is not converted, in place of ``gives``.
- ``by``: ``reference`` where onnxruntime lacks kernels, ``optimizing`` where its optimizations matter; ``rtol`` and
  ``atol``: how far numbers may be apart.
"""

from __future__ import annotations

import itertools
import json
import math
import tomllib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, TensorShapeProto, defs, helper, parser
from onnx.reference import ReferenceEvaluator

import reducelower
from reducelower import ConversionError, load_runtime
from reducelower.api import Legalized
from tests.models import everywhere, floats, int64s, model, model_of, operators, run
from tests.pairwise import pairwise
from tests.runtimes.toaster import runtime

__all__ = ["VOCABULARY", "check", "combinations", "facts_of", "parsed", "rows"]

Row = Mapping[str, Any]

VOCABULARY = {
    **vars(np),
    "bool": bool,
    "random": np.random,
    "fft": np.fft,
    "linalg": np.linalg,
    "math": math,
    "zip": zip,
    "floats": floats,
    "int64s": int64s,
}
FIELDS = {
    "nodes", "graph", "functions", "imports", "ir", "unchecked", "from", "to", "facts", "runtime", "without",
    "without_types", "options",
    "each", "let", "given", "constants", "ranked", "stated", "gives", "becomes", "most", "uses", "never", "keeps",
    "functions_left", "noted", "chooses", "holds", "refused", "by", "rtol", "atol",
}  # fmt: skip


def rows(*paths: Path, fields: Collection[str] = FIELDS) -> dict[str, Row]:
    """The rows of tables, by claim; a folder stands for the tables in it."""
    found: dict[str, Row] = {}
    for path in itertools.chain(*(sorted(path.glob("*.toml")) if path.is_dir() else [path] for path in paths)):
        for claim, row in tomllib.loads(path.read_text(encoding="utf-8")).items():
            assert not set(row) - set(fields), f"{path.name}, {claim}: {set(row) - set(fields)} are no fields"
            assert claim not in found, f"{path.name}: {claim} stands twice"
            found[claim] = row
    return found


def check(row: Row) -> None:
    """Convert the model of a row to every version it names, and compare what comes out."""
    # The versions are one more parameter: every value of another one meets each of them.
    chosen_of_each = list(combinations({"to": [[opset] for opset in row.get("to", [None])], **row.get("each", {})}))
    assert chosen_of_each
    for chosen in chosen_of_each:
        try:
            _check({**row, **{name: value for name, value in chosen.items() if name in FIELDS}}, chosen)
        except Exception as error:
            error.add_note(f"with {chosen}")
            raise


def combinations(each: Mapping[str, list[Any]]) -> Iterator[dict[str, Any]]:
    """What is chosen of each parameter, such that every two values of different ones meet."""
    names = [[name.strip() for name in key.split(",")] for key in each]
    for values in pairwise(*each.values()):
        groups = (value if len(group) > 1 else [value] for group, value in zip(names, values, strict=True))
        yield dict(zip(itertools.chain(*names), map(_value, itertools.chain(*groups)), strict=True))


def _value(value: Any) -> Any:
    """What stands in a list of values: TOML has no None, so that it is an empty table."""
    return None if value == {} else value


def _check(row: Row, chosen: Mapping[str, Any]) -> None:
    names: dict[str, Any] = {**VOCABULARY, **chosen}
    for name, text in row.get("let", {}).items():
        names[name] = eval(text, names)
    if row["from"] > defs.onnx_opset_version():
        return
    given: dict[str, np.ndarray] = {}
    for name, text in row.get("given", {}).items():
        given[name] = names[name] = np.asarray(eval(text, names))
    wanted = {name: np.asarray(eval(text, names)) for name, text in row.get("gives", {}).items()}
    source, feeds = _source(row, chosen, given, list(wanted) or ["y"])
    for target in row.get("to", [None]):
        try:
            legalized = _rewritten(row, chosen, source, target)
        except ConversionError as refused:
            assert "refused" in row, refused
            assert _filled(row["refused"], chosen) in str(refused)
            continue
        assert "refused" not in row, f"it was rewritten for {target}"
        result = legalized.model
        if "nodes" in row or "given" in row:
            _compare(row, source, _yielded(row, result, feeds), wanted or _yielded(row, source, feeds))
        kinds, anywhere = operators(result), everywhere(result)
        if "becomes" in row:
            assert kinds == [_filled(kind, chosen) for kind in row["becomes"]], target
        assert len(kinds) <= row.get("most", len(kinds)), (target, kinds)
        assert not {_filled(kind, chosen) for kind in row.get("never", ())} & anywhere, (target, kinds)
        assert {_filled(kind, chosen) for kind in row.get("uses", ())} <= anywhere, (target, kinds)
        for field, names in (("keeps", result.graph.initializer), ("functions_left", result.functions)):
            if field in row:
                assert [each.name for each in names] == row[field], (target, field)
        assert row.get("chooses", legalized.plan.target.opset) == legalized.plan.target.opset
        assert row.get("noted", "") in "".join(legalized.plan.notes), legalized.plan.notes
        known = {**chosen, "source": source, "made": result, "plan": legalized.plan}
        assert [text for text in row.get("holds", ()) if not eval(text, known)] == []


def _rewritten(row: Row, chosen: Mapping[str, Any], source: ModelProto, opset: int | None) -> Legalized:
    facts = facts_of(row, chosen)
    made_up = runtime(*facts) if facts else None
    target = reducelower.Target(
        opset,
        {_filled(kind, chosen) for kind in row.get("without", ())},
        row.get("without_types", ()),
        load_runtime(row["runtime"]) if "runtime" in row else made_up,
    )
    options = {
        name: _filled(value, chosen) if isinstance(value, str) else value
        for name, value in row.get("options", {}).items()
    }
    legalized = reducelower.legalize(source, target, **options)
    _check_whole(legalized.model)
    return legalized


def facts_of(row: Row, chosen: Mapping[str, Any]) -> list[str]:
    """The facts of a row as a target file has them."""
    return [
        "\n".join(f"{key} = {_toml(_chosen(value, chosen), chosen)}" for key, value in {"is": "wrong", **fact}.items())
        for fact in row.get("facts", ())
    ]


def _chosen(value: Any, chosen: Mapping[str, Any]) -> Any:
    """A parameter that stands for a whole table."""
    return chosen[value[1:]] if isinstance(value, str) and isinstance(chosen.get(value[1:]), Mapping) else value


def _toml(value: Any, chosen: Mapping[str, Any]) -> str:
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{key} = {_toml(held, chosen)}' for key, held in value.items())} }}"
    return _filled(json.dumps(value), chosen)


def _source(
    row: Row, chosen: Mapping[str, Any], given: Mapping[str, np.ndarray], outputs: list[str]
) -> tuple[ModelProto, Mapping[str, np.ndarray]]:
    held = row.get("constants", ())
    feeds = {name: value for name, value in given.items() if name not in held}
    constants = {name: given[name] for name in held}
    if "graph" in row:
        made = parsed(row, chosen, constants)
        taken = {value.name for value in made.graph.input}
        return made, {name: value for name, value in feeds.items() if name in taken}
    nodes = parser.parse_graph(f"g () => () {{ {_filled(row['nodes'], chosen)} }}").node
    made = model_of(nodes, feeds, row["from"], outputs=outputs, constants=constants, ranked=row.get("ranked", ()))
    stated = row.get("stated") or {}
    for value in [*made.graph.input, *made.graph.output] if stated else ():
        sizes = stated.get(value.name, [None] * 9 if value in made.graph.output else ())
        for dim, size in zip(value.type.tensor_type.shape.dim, sizes, strict=False):
            field = {} if size is None else {"dim_param" if isinstance(size, str) else "dim_value": size}
            dim.CopyFrom(TensorShapeProto.Dimension(**field))
    onnx.checker.check_model(made, full_check=True)
    return made, feeds


def parsed(row: Row, chosen: Mapping[str, Any], constants: Mapping[str, np.ndarray]) -> ModelProto:
    """The model of a row that gives a whole graph, with these initializers besides its own."""
    others = {**({"local": 1} if "functions" in row else {}), **row.get("imports", {})}
    imports = ", ".join(f'"{domain}": {version}' for domain, version in others.items())
    graph, functions = (_filled(row.get(name, ""), chosen) for name in ("graph", "functions"))
    made = model(graph, row["from"], row.get("ir", 8), functions, imports=imports, **constants)
    if not row.get("unchecked"):
        _check_whole(made)
    return made


def _check_whole(made: ModelProto) -> None:
    values = [*made.graph.input, *made.graph.output]
    # The checker takes no values of unknown rank here, which runtimes do.
    if all(value.type.tensor_type.HasField("shape") for value in values):
        onnx.checker.check_model(made, full_check=True)


def _filled(text: str, chosen: Mapping[str, Any]) -> str:
    return Template(text).substitute(chosen)


def _yielded(row: Row, made: ModelProto, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    by_reference = row.get("by") == "reference"
    optimizes = row.get("by") == "optimizing"
    found = ReferenceEvaluator(made).run(None, dict(feeds)) if by_reference else run(made, feeds, optimizes=optimizes)
    return {value.name: np.asarray(one) for value, one in zip(made.graph.output, found, strict=True)}


def _compare(row: Row, source: ModelProto, found: Mapping[str, np.ndarray], wanted: Mapping[str, np.ndarray]) -> None:
    for value in source.graph.output:
        got, want = found[value.name], wanted[value.name]
        assert got.dtype == helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        assert (got.shape, got.dtype.kind) == (want.shape, want.dtype.kind), value.name
        if got.dtype.kind in "bOUS":
            np.testing.assert_array_equal(got, want)
        else:
            np.testing.assert_allclose(got, want, rtol=row.get("rtol", 1e-5), atol=row.get("atol", 1e-6))
