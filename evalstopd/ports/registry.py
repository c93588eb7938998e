"""The tracker's model registry, into which kept checkpoints go."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from evalstopd.core.model import JobKey


@dataclass(frozen=True, slots=True)
class Promoted:
    """A published checkpoint that is to be a version of a registered model; `intent_id` names it for good.

    `path` is where the keeper published it, the files of `key.uid`; or the address of a logged model of the run.
    """

    intent_id: str
    key: JobKey
    account: str
    run_id: str
    step: int
    path: str
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Registered:
    """What became of a checkpoint that was to be registered: where it is, or why it is not, for good or for now."""

    intent_id: str
    where: str = ""
    refused: str = ""
    later: str = ""


class Registry(Protocol):
    """The tracker's model registry. Never raises, and never waits for it.

    Asked again for the same checkpoint, also by a later process, it makes no second version of it.
    """

    def register(self, checkpoints: Sequence[Promoted]) -> None:
        """Ask for versions of these checkpoints; `registered` tells later what came of it."""

    def registered(self) -> Sequence[Registered]:
        """Return what became of checkpoints since the last call. None for those asked for by a process that ended."""
