"""Slurm's accounting as a file: `sacct --parsable2` with a header, or `sacct --json`."""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from evalstopd.core.estimates import PastLife
from evalstopd.core.model import Phase
from evalstopd.errors import WrongUsage
from evalstopd.slurmtext.limits import finite
from evalstopd.slurmtext.numbers import number
from evalstopd.slurmtext.states import REQUEUED, first_word, phase_of
from evalstopd.slurmtext.tres import count_gpus

FIELDS = ("JobID", "Submit", "Elapsed", "State", "AllocTRES")
"""What every table must have; other fields that `Accounted` has a place for are read where they are there."""

_ELAPSED = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)")
_EPOCH = re.compile(r"[0-9]{9,12}")
_NO_TIME = ("", "Unknown", "None", "INVALID")
NO_SUBMISSION, NO_LENGTH = "no submission time", "no running time told"
"""Why a record is passed over: accounting lost it, which is no fault of the file."""

_DAY_ONE = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Accounted:
    """One life of a job, or one of its steps, as accounting has it; `where` is its place in the file.

    `raw_id` is empty where the table has no JobIDRaw. Times in seconds; `submit_s` of a table is local time, so only
    differences mean anything. `limit_s` is None where there is no limit, `ended_s` where no end is told.
    """

    where: str
    job_id: str
    raw_id: str
    submit_s: float
    elapsed_s: float
    state: str
    gpus: int
    limit_s: float | None = None
    account: str = ""
    user: str = ""
    cluster: str = ""
    name: str = ""
    ended_s: float | None = None

    @property
    def is_step(self) -> bool:
        """Tell whether this is a step of a job; `--allocations` leaves them out."""
        return "." in self.job_id

    @property
    def is_over(self) -> bool:
        """Tell whether the job had ended when the file was written; an unfamiliar state does not prove that."""
        return phase_of(self.state) is Phase.ENDED

    @property
    def past(self) -> PastLife | None:
        """Return this as a life that is over; None for a step, and for one that goes on or has no known end."""
        over = self.is_over or self.state == REQUEUED
        if self.is_step or not over or self.ended_s is None:
            return None
        whose = (self.user, self.account, self.name)
        return PastLife(*whose, self.limit_s, self.elapsed_s, self.state, self.ended_s, self.submit_s)


def read_sacct(name: str, text: str, needed: Collection[str] = FIELDS) -> Iterator[Accounted | str]:
    """Yield the records of a file of sacct's, its form told by its first letter; `needed` are fields of a table.

    A text stands for a record that lacks what every job has, and says what.
    Raises WrongUsage, naming file and line (`file:jobs[n]` in JSON), for the first record that makes no sense.
    """
    text = text.removeprefix("\ufeff")
    if text.lstrip().startswith("{"):
        return _read_json(name, text)
    return _read_table(name, text.splitlines(), needed)


def read_framed(name: str, text: str, fields: Sequence[str], word: str) -> Iterator[Accounted]:
    """Yield the records of `sacct --parsable2 --noheader --delimiter=WORD` for these fields.

    With a word that no user can know, names may hold anything, newlines too, as long as the last field is none of
    theirs. Records without submission or length are passed over. Raises WrongUsage for what makes no sense.
    """
    first, *rest = text.split(word)
    record = [first]
    for place, cell in enumerate(rest, start=1):
        # The last field of a record and the first one of the next stand between two words, parted by a newline.
        last, newline, following = cell.partition("\n") if len(record) == len(fields) - 1 else (cell, "", "")
        record.append(last)
        if newline:
            made = _row(f"{name}:{place}", fields, record)
            if not isinstance(made, str):
                yield made
            record = [following]
    if record != [""]:
        raise WrongUsage(f"{name}: sacct's answer is cut short")


def _read_table(name: str, lines: list[str], needed: Collection[str]) -> Iterator[Accounted | str]:
    header = lines[0].strip().split("|") if lines else []
    for field in needed:
        if field not in header and not (field == "Elapsed" and "ElapsedRaw" in header):
            raise WrongUsage(f"{name}:1: sacct's header has no field {field}")
    for place, line in enumerate(lines[1:], start=2):
        if line.strip():
            yield _row(f"{name}:{place}", header, line.rstrip("\n").split("|"))


def _row(where: str, header: Sequence[str], cells: Sequence[str]) -> Accounted | str:
    if len(cells) != len(header):
        raise WrongUsage(f"{where}: {len(cells)} fields where the header has {len(header)}")
    cell = dict(zip(header, cells, strict=True))
    if cell["Submit"] in _NO_TIME:
        return NO_SUBMISSION
    if cell["ElapsedRaw" if "ElapsedRaw" in cell else "Elapsed"] in _NO_TIME:
        return NO_LENGTH
    limit = cell.get("TimelimitRaw", "")
    return Accounted(
        where=where,
        job_id=cell["JobID"],
        raw_id=cell.get("JobIDRaw", ""),
        submit_s=_moment_s(cell["Submit"], "Submit", where),
        elapsed_s=_elapsed_s(cell, where),
        state=first_word(cell["State"]),
        gpus=count_gpus(cell.get("AllocTRES", "")),
        limit_s=finite(int(limit) * 60.0) if limit.isdecimal() else None,
        account=cell.get("Account", ""),
        user=cell.get("User", ""),
        cluster=cell.get("Cluster", ""),
        name=cell.get("JobName", ""),
        ended_s=None if cell.get("End", "") in _NO_TIME else _moment_s(cell["End"], "End", where),
    )


def _elapsed_s(cell: Mapping[str, str], where: str) -> float:
    if "ElapsedRaw" in cell:
        return number(cell["ElapsedRaw"], "ElapsedRaw", where)
    found = _ELAPSED.fullmatch(cell["Elapsed"])
    if found is None:
        raise WrongUsage(f"{where}: Elapsed is not of the form [D-]HH:MM:SS: {cell['Elapsed'][:40]!a}")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def _moment_s(text: str, what: str, where: str) -> float:
    """Return seconds on a calendar: sacct tells local times, or seconds since the epoch where it is asked to."""
    if _EPOCH.fullmatch(text):
        return float(text)
    try:
        return (datetime.fromisoformat(text).replace(tzinfo=UTC) - _DAY_ONE).total_seconds()
    except ValueError:
        raise WrongUsage(f"{where}: {what} is not a date and time: {text[:40]!a}") from None


def _read_json(name: str, text: str) -> Iterator[Accounted | str]:
    try:
        records = json.loads(text)["jobs"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        place = f"{name}:{error.lineno}" if isinstance(error, json.JSONDecodeError) else f"{name}:1"
        raise WrongUsage(f"{place}: not the output of sacct --json") from None
    if not isinstance(records, list):
        raise WrongUsage(f"{name}:1: not the output of sacct --json")
    for index, record in enumerate(records):
        where = f"{name}:jobs[{index}]"
        try:
            yield _json_record(where, record)
        except (KeyError, TypeError, IndexError, AttributeError, ValueError):
            raise WrongUsage(f"{where}: not a job record of sacct --json") from None


def _json_record(where: str, record: Any) -> Accounted | str:
    if not record["time"]["submission"]:
        return NO_SUBMISSION
    if record["time"]["elapsed"] is None:
        return NO_LENGTH
    allocated = record["tres"]["allocated"]
    gpus = [f"gres/{each['name']}={int(each['count'])}" for each in allocated if each["type"] == "gres"]
    state = record["state"]["current"]
    return Accounted(
        where=where,
        job_id=str(record["job_id"]),
        raw_id=str(record["job_id"]),
        submit_s=number(str(record["time"]["submission"]), "submission", where),
        elapsed_s=number(str(record["time"]["elapsed"]), "elapsed", where),
        # A list of words since 23.02, one word before.
        state=state if isinstance(state, str) else state[0],
        gpus=count_gpus(",".join(gpus)),
        limit_s=_json_limit_s(record["time"].get("limit")),
        account=str(record.get("account") or ""),
        user=str(record.get("user") or (record.get("association") or {}).get("user") or ""),
        cluster=str(record.get("cluster") or ""),
        name=str(record.get("name") or ""),
        ended_s=float(record["time"].get("end") or 0) or None,
    )


def _json_limit_s(limit: Any) -> float | None:
    """Return a time limit: minutes as an object with `set` and `infinite` since 23.02, a plain number before."""
    if isinstance(limit, dict):
        return finite(limit["number"] * 60.0) if limit.get("set") and not limit.get("infinite") else None
    return finite(limit * 60.0) if isinstance(limit, int) and limit > 0 else None
