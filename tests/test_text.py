"""Expressions in the texts of models and rules."""

from __future__ import annotations

import ast
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from reducelower.text import expression


def test_threads_may_read_expressions_at_once() -> None:
    texts = [" + ".join(f"(s{at} - {part}) // 2" for at in range(40)) for part in range(200)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            found = list(threads.map(expression, texts))
    finally:
        sys.setswitchinterval(interval)
    assert [ast.unparse(tree) for tree in found] == texts


@pytest.mark.parametrize("text", ["a +", "a\0", "def f(): pass"])
def test_what_is_no_expression_says_so(text: str) -> None:
    with pytest.raises((SyntaxError, ValueError)):
        expression(text)
