"""Base policies, one ranking a file; EvalStop wraps any of them."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from evalstopd.core.policies.fifo import Fifo
from evalstopd.core.policies.ranking import Allocation, ElasticPolicy, Policy, rank
from evalstopd.core.spec import parse_spec

POLICIES: Mapping[str, Callable[[], Policy]] = MappingProxyType({"fifo": Fifo})

__all__ = ["POLICIES", "Allocation", "ElasticPolicy", "Fifo", "Policy", "policy", "rank"]


def policy(spec: str) -> Policy:
    """Make a base policy from its name. Raises ValueError for an unknown one."""
    name = parse_spec(spec).name
    if name not in POLICIES:
        raise ValueError(f"unknown policy {name!r}; known: {', '.join(sorted(POLICIES))}")
    return POLICIES[name]()
