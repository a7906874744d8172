"""Second looks at whole models: what a region was asked to lose, other inputs, and what two runtimes differ in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reducelower.model.graph import all_nodes
from reducelower.verification.checking.sites import Regions
from reducelower.verification.feeding.limits import open_to_special
from reducelower.verification.inputs.made import varied
from reducelower.verification.judging.compare import withdrawn
from reducelower.verification.judging.runs import Run
from reducelower.verification.result import OutputComparison
from reducelower.verification.running.source import CannotRunError, OutOfTimeError
from reducelower.verification.whole.borders import at_borders
from reducelower.verification.whole.question import Question, compared, differ, far_apart

__all__ = ["as_regions", "searched", "without_slight"]


def as_regions(outputs: list[OutputComparison], regions: Regions | None) -> list[OutputComparison]:
    """Outputs of which some show what a region was asked to lose, or what one has right and the source overflows in."""
    sites = () if regions is None else regions.findings
    chosen = any(site.status == "loses range" and site.is_chosen for site in sites)
    improved = any(site.status == "improved" for site in sites)
    found = []
    for item in outputs:
        if chosen and item.loses_range:
            item = replace(item, verdict="equal", reason=f"loses range: {item.reason}")
        elif improved and item.gains_range:
            item = replace(item, verdict="equal", reason=f"right where the source is not: {item.reason}")
        found.append(item)
    return found


def searched(question: Question, left: Run, right: Run, outputs: list[OutputComparison]) -> list[OutputComparison]:
    """Look for inputs on which a region shows that differs by itself; both runs then end with the first of them."""
    accepted = {value.name for value in question.after.proto.graph.input} & left.cases[0].keys()
    for feeds in varied(left.cases[0], question.request.given, question.request.seed):
        try:
            question.clock.check()
            before = left.session.run(feeds, question.clock.left)
            after = right.session.run({name: feeds[name] for name in accepted}, question.clock.left)
        except OutOfTimeError:
            break
        except CannotRunError:
            continue
        found = replace(left, cases=[feeds], results=[before]), replace(right, cases=[feeds], results=[after])
        if differ(compared(question, *found)) and differ(at_borders(question, *found, compared(question, *found))):
            for run, results in ((left, before), (right, after)):
                run.cases, run.results = [*run.cases[: len(run.results)], feeds], [*run.results, results]
            return compared(question, left, right)
    return outputs


def without_slight(
    question: Question, left: Run, right: Run, outputs: Sequence[OutputComparison]
) -> list[OutputComparison]:
    """Withdraw what rounding may explain where parts were not run, or what two runtimes differ in."""
    is_open = bool(open_to_special(all_nodes(question.before.proto)))
    far = far_apart(question, left, right, leaves_special=is_open)
    reason = f"{left.runtime} and {right.runtime} may differ as much"
    if left.runtime == right.runtime:
        reason = "rounding may explain as much, in parts that were not run"
    return withdrawn(outputs, reason, lambda item: item.name not in far, with_difference=True)
