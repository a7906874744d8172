"""A runtime made up for tests."""

from __future__ import annotations

from reducelower.runtimes import Runtime, read_runtime

HEAD = """
[runtime]
name = "toaster"
version = "1.0"
about = "Made up."
[opsets]
reads = "9-21"
prefer = 13
"""


def runtime(*facts: str, head: str = HEAD) -> Runtime:
    """A runtime of which the facts are true, each the inside of a [[fact]] table without says and evidence."""
    tables = [
        f'[[fact]]\nsays = "Fact {number}."\nevidence = {{ measured = "toaster 1.0", on = 2026-11-21 }}\n{fact}\n'
        for number, fact in enumerate(facts, start=1)
    ]
    return read_runtime(head + "".join(tables))
