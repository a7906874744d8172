"""How long one node's way is, as docs/design.md says."""

import re
from pathlib import Path

from tools.walk import calls_of, reduction


def test_a_node_takes_no_more_calls_than_the_page_says() -> None:
    page = Path("docs/design.md").read_text(encoding="utf-8")
    said = re.search(r"at most (\d+) calls of functions in (\d+) modules", page)
    assert said is not None
    calls = calls_of(reduction().SerializeToString(), 13)
    assert (calls.total() <= int(said[1]), len(calls) <= int(said[2])) == (True, True), (calls.total(), len(calls))
