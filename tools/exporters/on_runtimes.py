"""Run models of many exporters on a runtime, before and after a conversion for it.

    python -m tools.exporters.on_runtimes --runtime openvino --for openvino transformers
    python -m tools.exporters.on_runtimes --runtime opencv --interpreter ~/cv4/bin/python --for opencv@4.14 --sized

It needs the packages of `python -m tools.exporters.corpus`, and the runtime, which may be installed for another
interpreter. It prints a line of a table, how often `inspect` predicts the outcome, and every model that is not right
afterwards.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import reducelower
from reducelower.conformance.case import Case
from reducelower.conformance.process import Subject, Worker
from reducelower.errors import ConversionError
from reducelower.model.document import Document
from reducelower.pipeline.where import OnRuntime, where

from ..conformance.nodes import judge_roughly
from .corpus import PARTS, Source
from .corpus import run as expected_of

SECONDS = 60.0
"""Seconds that a runtime may take for a model."""


def judge(worker: Worker, model: bytes, source: Source, expected: list[Any]) -> tuple[str, str]:
    """Right, wrong or refused, with the runtime's message."""
    case = Case(source.name, "", 0, model, source.feeds, tuple(expected))
    verdict = judge_roughly(case, worker.run(model, source.feeds))
    return verdict.word, verdict.detail


def sizes_of(source: Source) -> dict[str, int]:
    """The sizes of a model's symbolic dimensions in the values that it is fed."""
    return {
        dim.dim_param: int(size)
        for value in source.model.graph.input
        if value.name in source.feeds
        for dim, size in zip(value.type.tensor_type.shape.dim, source.feeds[value.name].shape, strict=True)
        if dim.dim_param
    }


def agrees(found: OnRuntime, before: str, after: str) -> bool:
    """Whether `inspect` predicted the outcome; it says "runs" of models that are wrong for large values only."""
    if found.word == "does not run":
        return before != "right" and after != "right"
    if found.word == "runs after --for":
        return before != "right" and after == "right"
    return before == "right" or (after == "right" and "overflows" in found.faults)


def main() -> int:
    """Print the line; return 1 if a model was right before and is not afterwards."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.exporters.on_runtimes", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="parts to make; default: all")
    parser.add_argument("--runtime", required=True, help="name of the runtime's adapter")
    parser.add_argument("--interpreter", help="Python that has the runtime; default: this one")
    parser.add_argument("--for", dest="target", required=True, help="target to convert for, such as opencv@4.14")
    parser.add_argument(
        "--sized", action="store_true", help="set symbolic dimensions to the sizes that the model is fed"
    )
    arguments = parser.parse_args()
    runtime = reducelower.load_runtime(arguments.target)
    target = reducelower.Target(runtime=runtime)
    pairs: Counter[tuple[str, str]] = Counter()
    agreed = 0
    problems = []
    subject = Subject.of_runtime(arguments.runtime, arguments.interpreter)
    with tempfile.TemporaryDirectory() as folder, Worker(subject, SECONDS) as worker:
        for source in (source for part in arguments.parts or PARTS for source in PARTS[part](Path(folder))):
            expected = expected_of(source.model, source.feeds)
            before, why = judge(worker, source.model.SerializeToString(), source, expected)
            after = before
            try:
                sizes = sizes_of(source) if arguments.sized else {}
                converted = reducelower.legalize(source.model, target, set_sizes=sizes).model
                if converted != source.model:  # some runtimes do not give the same result twice
                    after, why = judge(worker, converted.SerializeToString(), source, expected)
            except ConversionError as refused:
                after, why = "told", str(refused)
            pairs[before, after] += 1
            (found,) = where(Document(source.model).bare, [runtime])
            agreed += agrees(found, before, after)
            if after != "right":
                problems.append(f"{source.kind}, {source.name}: {before}, then {after}: {' '.join(why.split())[:160]}")
        version = worker.version
    befores, afters = (Counter(pair[side] for pair in pairs.elements()) for side in (0, 1))
    worse = sum(count for (before, after), count in pairs.items() if before == "right" != after)
    print("| target | measured on | models | right / wrong / refused | after `--for` | told beforehand | made worse |")
    print("|---|---|--:|--:|--:|--:|--:|")
    counts = (" / ".join(str(found[word]) for word in ("right", "wrong", "refused")) for found in (befores, afters))
    print(
        f"| {arguments.target} | {version} | {pairs.total()} | {' | '.join(counts)} | {afters['told']} | {worse} |\n",
        f"inspect agrees in {agreed} of {pairs.total()}",
        *problems,
        sep="\n",
    )
    return int(worse > 0)


if __name__ == "__main__":
    sys.exit(main())
