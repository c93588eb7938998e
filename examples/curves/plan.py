"""Which runs are trained: sources of four families, fixed by what training does in them before any rule saw them."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from . import plan_offline, plan_online, plan_rlhf, plan_supervised
from .source import Source

RUNS: Mapping[str, int] = MappingProxyType({"supervised": 6, "rlhf": 4, "online-rl": 6, "offline-rl": 6})
"""Runs of each source; they are kept together wherever curves are split or drawn, as a repository's are."""

FAMILIES: Mapping[str, Callable[[], tuple[Source, ...]]] = MappingProxyType(
    {
        "supervised": plan_supervised.sources,
        "rlhf": plan_rlhf.sources,
        "online-rl": plan_online.sources,
        "offline-rl": plan_offline.sources,
    }
)
