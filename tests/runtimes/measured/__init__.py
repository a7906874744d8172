"""What probing each runtime gave, kept so that its target file can be held against it anywhere.

One file per runtime: the cases of the conformance suite that came out wrong or were refused; all others were right.

    python -m tests.runtimes.measured openvino results.jsonl

writes one from the results that `reducelower probe --results` keeps.
"""

from __future__ import annotations

import gzip
from pathlib import Path

from reducelower.conformance.case import Case
from reducelower.conformance.running import read_results
from reducelower.conformance.suite import suite

__all__ = ["RUNTIMES", "failures", "write"]

_FOLDER = Path(__file__).parent

RUNTIMES = tuple(sorted(path.name.removesuffix(".txt.gz") for path in _FOLDER.glob("*.txt.gz")))
"""The runtimes that there is a record of."""


def failures(runtime: str) -> dict[str, str]:
    """``wrong`` or ``refused`` by the name of the case."""
    text = gzip.decompress((_FOLDER / f"{runtime}.txt.gz").read_bytes()).decode()
    return dict(reversed(line.split("\t")) for line in text.splitlines())


def write(runtime: str, results: Path) -> int:
    """Keep what failed of the suite as it is now; returns how many cases there are.

    Raises:
        ValueError: the results are not of the whole suite.
    """
    cases: dict[str, Case] = {case.name: case for case in suite()}
    found = {
        result.case: result.word
        for result in read_results(results)
        if result.case in cases and result.digest == cases[result.case].digest
    }
    if missing := len(cases) - len(found):
        raise ValueError(f"{results} lacks {missing} cases of the suite")
    lines = [f"{found[name]}\t{name}\n" for name in cases if found[name] != "right"]
    (_FOLDER / f"{runtime}.txt.gz").write_bytes(gzip.compress("".join(lines).encode(), mtime=0))
    return len(cases)
