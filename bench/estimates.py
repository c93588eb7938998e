"""A made-up site's accounting, to measure estimates on: `sacct --parsable2`, the same bytes for the same seed.

Run from the root of the tree: python -m bench.estimates FILE [--seed N] [--days N] [--users N], then
`evalstopd estimates --sacct FILE`. No real site is behind it: users ask for round limits, a quarter of them for the
longest there is; their works' lengths scatter and drift; some give each job a name of its own, some crash, cancel or
run into the limit. What it shows is whether the formula learns what is there to learn, not how a given site will do.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

HEADER = "JobID|JobName|User|Account|Submit|End|ElapsedRaw|TimelimitRaw|State|AllocTRES"
ROUND_MIN = (30, 60, 120, 240, 480, 720, 1440, 2880)
LONGEST_MIN = ROUND_MIN[-1]
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
HOUR_S = 3600.0


@dataclass(slots=True)
class Work:
    """What a user does again and again under one name: its typical length in seconds, its scatter, its limit."""

    name: str
    typical_s: float
    scatter: float
    limit_min: int
    own_names: bool


@dataclass(slots=True)
class Person:
    """A user: account, works, jobs a day, and how often jobs crash or are cancelled."""

    user: str
    account: str
    works: list[Work]
    a_day: float
    crashes: float
    cancels: float


def person(number: int, dice: Random) -> Person:
    """Return a user drawn at random."""
    works = [work(f"work{place}", dice) for place in range(dice.randint(1, 5))]
    rates = (dice.lognormvariate(1.0, 1.0), dice.uniform(0.02, 0.25), dice.uniform(0.0, 0.2))
    return Person(f"user{number}", f"lab{number % 7}", works, *rates)


def work(name: str, dice: Random) -> Work:
    """Return a user's work: a quarter ask for the longest limit there is, the others for a round one with room."""
    typical_s = min(dice.lognormvariate(8.6, 1.2), 0.8 * LONGEST_MIN * 60)
    wanted_min = typical_s / 60 * dice.uniform(1.2, 4.0)
    limit_min = next((each for each in ROUND_MIN if each >= wanted_min), LONGEST_MIN)
    longest = dice.random() < 0.25
    return Work(name, typical_s, dice.uniform(0.1, 0.9), LONGEST_MIN if longest else limit_min, dice.random() < 0.3)


def jobs(who: Person, days: int, dice: Random) -> Iterator[tuple[float, str]]:
    """Yield a user's jobs as (submit, the rest of the record), seconds from the beginning on."""
    at_s, number = 0.0, 0
    while (at_s := at_s + dice.expovariate(who.a_day / 86400)) < days * 86400:
        number += 1
        does = dice.choice(who.works)
        does.typical_s *= dice.lognormvariate(0.0, 0.02)
        elapsed_s, state = outcome(who, does, dice)
        end_s = at_s + dice.expovariate(1 / (2 * HOUR_S)) + elapsed_s
        name = f"{does.name}-{number}" if does.own_names else does.name
        stamps = f"{_moment(at_s)}|{_moment(end_s)}|{int(elapsed_s)}|{does.limit_min}|{state}|gres/gpu=1"
        yield at_s, f"{name}|{who.user}|{who.account}|{stamps}"


def outcome(who: Person, does: Work, dice: Random) -> tuple[float, str]:
    """Return how long a job runs, in seconds, and how it ends."""
    length_s, chance = does.typical_s * dice.lognormvariate(0.0, does.scatter), dice.random()
    if chance < who.crashes:
        return max(1.0, dice.expovariate(1 / 120)), "FAILED"
    if length_s >= does.limit_min * 60:
        return does.limit_min * 60 + 1.0, "TIMEOUT"
    if chance < who.crashes + who.cancels:
        return max(1.0, dice.random() * length_s), f"CANCELLED by {1000}"
    return max(1.0, length_s), "COMPLETED"


def site(seed: int, days: int, users: int) -> Iterator[str]:
    """Yield the lines of the file."""
    dice = Random(seed)
    rows = sorted(each for number in range(users) for each in jobs(person(number, dice), days, dice))
    yield HEADER
    yield from (f"{place}|{rest}" for place, (_, rest) in enumerate(rows, start=1))


def _moment(at_s: float) -> str:
    return (BEGIN + timedelta(seconds=int(at_s))).strftime("%Y-%m-%dT%H:%M:%S")


def main() -> None:
    """Write the file."""
    ask = argparse.ArgumentParser(description="Write a made-up site's accounting.")
    ask.add_argument("file", type=Path)
    for name, default in (("seed", 1), ("days", 60), ("users", 60)):
        ask.add_argument(f"--{name}", type=int, default=default)
    asked = ask.parse_args()
    asked.file.write_text("\n".join(site(asked.seed, asked.days, asked.users)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
