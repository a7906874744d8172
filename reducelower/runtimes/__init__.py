"""Runtime targets: what is legal on a runtime, as data.

A target file (`rules/targets/NAME.toml`) says which opset versions a runtime reads and lists facts: which nodes come
out wrong there or are refused, in which form, on which element types, and how that is known. The engine replaces every
node that a fact is true of by an equivalent one that none is true of.
"""

from reducelower.errors import TargetError
from reducelower.runtimes.facts import Evidence, Fact, Is
from reducelower.runtimes.ranges import Ranges, Versions
from reducelower.runtimes.reading import load_runtime, read_runtime, shipped_names, shipped_versions
from reducelower.runtimes.runtime import Runtime, combined

__all__ = [
    "Evidence",
    "Fact",
    "Is",
    "Ranges",
    "Runtime",
    "TargetError",
    "Versions",
    "combined",
    "load_runtime",
    "read_runtime",
    "shipped_names",
    "shipped_versions",
]
