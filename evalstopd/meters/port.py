"""Where figures go. No text of users is among them: names are those of the program's own verbs, kinds and states."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from evalstopd.core.intent import State
from evalstopd.loop import TickReport


@dataclass(frozen=True, slots=True)
class Standing:
    """How things stand after a pass: intents by state, and how many breakers hold: the site's, accounts', owners'."""

    intents: Mapping[State, int]
    site_breakers: int
    account_breakers: int
    owner_breakers: int


class Meters(Protocol):
    """Takes figures; never raises and never waits."""

    def ticked(self, report: TickReport, seconds: float, *, leads: bool) -> None:
        """Take what a pass saw and did, and how long it took."""

    def called(self, port: str, verb: str, seconds: float) -> None:
        """Take a call of a port."""

    def failed(self, port: str, verb: str, error: str, number: int = 1) -> None:
        """Take errors that a call of a port came to, by their kind."""

    def left_alone(self, port: str, verb: str, why: str, number: int = 1) -> None:
        """Take runs or jobs among many that are left alone for their own part: `quarantined` or `refused`."""

    def registered(self, result: str) -> None:
        """Take what became of a checkpoint that was to be a model version: `made`, `refused` or `later`."""

    def stands(self, standing: Standing) -> None:
        """Take how things stand."""


def not_to_be_had(host: str, port: int, error: OSError) -> str:
    """Say that the address for scrapes cannot be listened at, and why."""
    return f"metrics.port: {host} port {port} cannot be listened at: {error.strerror or error}"
