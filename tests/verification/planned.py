"""Rewrites made by hand: an original and its replacement as models, with the plan that says so."""

from __future__ import annotations

from dataclasses import dataclass, replace

from onnx import ModelProto, TensorProto

from reducelower.options import Target
from reducelower.plan import Plan, Site
from reducelower.verification import SiteVerification, verify_regions
from reducelower.verification.running.source import inlined
from tests.models import model

__all__ = ["Rewrite", "planned", "rewrite"]


@dataclass(frozen=True)
class Rewrite:
    before: ModelProto
    after: ModelProto
    plan: Plan

    def finding(self) -> SiteVerification:
        (found,) = verify_regions(self.before, self.after, self.plan).findings
        return found

    def as_chosen(self) -> Rewrite:
        """The same by a rule that a user names."""
        (site,) = self.plan.sites
        return replace(self, plan=replace(self.plan, sites=(replace(site, rule="spec/by hand"),)))


def planned(before: ModelProto, after: ModelProto, *, count: int = 1) -> Rewrite:
    """The first node of a model without functions, and so many nodes in its place in another model."""
    before, after = inlined(before), inlined(after)
    node = before.graph.node[0]
    site = Site("graph", node.name or f"{node.op_type}#0", node.op_type, "by hand", 0, 0, count)
    old, new = (each.opset_import[0].version for each in (before, after))
    return Rewrite(before, after, Plan(old, Target(opset=new), (site,)))


def rewrite(
    before: str,
    after: str,
    *,
    kind: str = "float",
    rank: int = 2,
    opsets: tuple[int, int] = (18, 18),
    extra: str = "",
    constants: tuple[str, str] = ("", ""),
) -> Rewrite:
    """One node `y = ...(x)` and the nodes in its place, on data of an element type and rank.

    Args:
        before: the node.
        after: the nodes, the last of which gives y.
        kind: element type of x and y.
        rank: rank of x.
        opsets: opset versions before and after.
        extra: further graph inputs, such as ``, int64[k] axes``.
        constants: initializers before and after, such as ``int64[1] axes = {1}``.
    """
    sizes = ", ".join(f"N{at}" for at in range(rank))
    models = []
    for text, opset, held in zip((before, after), opsets, constants, strict=True):
        held = f" <{held}>" if held else ""
        models.append(model(f"g ({kind}[{sizes}] x{extra}) => ({kind}[K] y){held} {{ {text} }}", opset, 10))
        # Reductions change the rank, which the text above does not know.
        models[-1].graph.output[0].type.tensor_type.ClearField("shape")
        models[-1].graph.output[0].type.tensor_type.elem_type = TensorProto.DataType.Value(kind.upper())
    return planned(*models, count=len(models[1].graph.node))
