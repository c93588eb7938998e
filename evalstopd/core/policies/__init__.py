"""Base policies, one a file; EvalStop wraps any of them."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import TypeVar

from evalstopd.core.policies.fifo import Fifo
from evalstopd.core.policies.goodput import Goodput
from evalstopd.core.policies.las import Las
from evalstopd.core.policies.loss_aware import LossAware
from evalstopd.core.policies.ranking import STEADY, Allocation, ElasticPolicy, Policy, Trend, rank
from evalstopd.core.policies.sjf_est import SjfEst
from evalstopd.core.policies.slaq import Slaq
from evalstopd.core.policies.srtf_est import SrtfEst
from evalstopd.core.spec import Spec, parse_spec

POLICIES: Mapping[str, Callable[..., Policy]] = MappingProxyType(
    {"fifo": Fifo, "sjf-est": SjfEst, "srtf-est": SrtfEst, "loss-aware": LossAware, "las": Las}
)
ELASTIC: Mapping[str, Callable[..., ElasticPolicy]] = MappingProxyType({"slaq": Slaq, "goodput": Goodput})

__all__ = [
    "ELASTIC",
    "POLICIES",
    "STEADY",
    "Allocation",
    "ElasticPolicy",
    "Policy",
    "Trend",
    "elastic",
    "policy",
    "rank",
]

_Made = TypeVar("_Made")


def policy(spec: str) -> Policy:
    """Make a base policy from text such as `srtf-est` or `srtf-est:floor=0`.

    Raises ValueError, in words a user understands, for an unknown name or parameter or a bad value.
    """
    return _make(POLICIES, parse_spec(spec))


def elastic(spec: str) -> ElasticPolicy:
    """Make an elastic policy from text such as `goodput`. Raises ValueError as `policy` does."""
    return _make(ELASTIC, parse_spec(spec))


def _make(known: Mapping[str, Callable[..., _Made]], spec: Spec) -> _Made:
    made = known.get(spec.name)
    if made is None:
        raise ValueError(f"unknown policy {spec.name!r}; known: {', '.join(sorted(known))}")
    taken = [f.name for f in fields(made) if f.type is float]  # type: ignore[arg-type]
    for name, _ in spec.params:
        if name not in taken:
            raise ValueError(f"policy {spec.name} has no parameter {name!r}; it has: {', '.join(taken) or 'none'}")
    return made(**dict(spec.params))
