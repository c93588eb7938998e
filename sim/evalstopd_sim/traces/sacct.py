"""Traces from Slurm's accounting: `sacct --parsable2` with a header, or `sacct --json`."""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from evalstopd.errors import Misconfigured
from evalstopd_sim.traces.row import Row, number

_GPUS = re.compile(r"(?:^|,)gres/gpu=(\d+)")
_ELAPSED = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)")
_DAY_ONE = datetime(1970, 1, 1, tzinfo=UTC)
_UNFINISHED = ("PENDING", "RUNNING", "SUSPENDED", "REQUEUED", "RESIZING", "CONFIGURING", "COMPLETING")
_NEEDED = ("JobID", "Submit", "Elapsed", "State", "AllocTRES")


def read_sacct(name: str, lines: list[str]) -> Iterator[Row | str]:
    """Yield the rows of `sacct --parsable2 --allocations --format=JobID,Submit,Elapsed,State,AllocTRES,TimelimitRaw`.

    Steps, jobs that had not ended, and jobs without GPUs or running time are left out.
    """
    header = lines[0].strip().split("|")
    for needed in _NEEDED:
        if needed not in header and not (needed == "Elapsed" and "ElapsedRaw" in header):
            raise Misconfigured(f"{name}:1: sacct's header has no field {needed}")
    for place, line in enumerate(lines[1:], start=2):
        if line.strip():
            yield _row(f"{name}:{place}", header, line.rstrip("\n").split("|"))


def _row(where: str, header: list[str], cells: list[str]) -> Row | str:
    if len(cells) != len(header):
        raise Misconfigured(f"{where}: {len(cells)} fields where the header has {len(header)}")
    cell = dict(zip(header, cells, strict=True))
    if "." in cell["JobID"]:
        return "job step"
    found = _GPUS.search(cell["AllocTRES"])
    duration_s = _elapsed_s(cell, where)
    gpus = int(found[1]) if found else 0
    reason = _useless(cell["State"], gpus, duration_s)
    if reason:
        return reason
    limit = cell.get("TimelimitRaw", "")
    estimate_s = int(limit) * 60.0 if limit.isdecimal() else None
    return Row(where, cell["JobID"], _moment_s(cell["Submit"], where), gpus, duration_s, estimate_s)


def _useless(state: str, gpus: int, duration_s: float) -> str:
    if state.startswith(_UNFINISHED):
        return "not ended when the trace was taken"
    if gpus == 0:
        return "no GPU"
    return "" if duration_s else "no running time"


def _elapsed_s(cell: Mapping[str, str], where: str) -> float:
    if "ElapsedRaw" in cell:
        return number(cell["ElapsedRaw"], "ElapsedRaw", where)
    found = _ELAPSED.fullmatch(cell["Elapsed"])
    if found is None:
        raise Misconfigured(f"{where}: Elapsed is not of the form [D-]HH:MM:SS: {cell['Elapsed'][:40]!a}")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def _moment_s(text: str, where: str) -> float:
    """Return seconds on a calendar; sacct tells local times, of which only differences are used."""
    try:
        return (datetime.fromisoformat(text).replace(tzinfo=UTC) - _DAY_ONE).total_seconds()
    except ValueError:
        raise Misconfigured(f"{where}: Submit is not a date and time: {text[:40]!a}") from None


def read_sacct_json(name: str, lines: list[str]) -> Iterator[Row | str]:
    """Yield the rows of `sacct --json`; the place of a bad record is told as `file:jobs[n]`."""
    try:
        records = json.loads("\n".join(lines))["jobs"]
    except (ValueError, KeyError, TypeError) as error:
        place = f"{name}:{error.lineno}" if isinstance(error, json.JSONDecodeError) else f"{name}:1"
        raise Misconfigured(f"{place}: not the output of sacct --json") from None
    for index, record in enumerate(records):
        where = f"{name}:jobs[{index}]"
        try:
            yield _json_row(where, record)
        except (KeyError, TypeError, IndexError, AttributeError):
            raise Misconfigured(f"{where}: not a job record of sacct --json") from None


def _json_row(where: str, record: Any) -> Row | str:
    allocated = record["tres"]["allocated"]
    gpus = sum(int(each["count"]) for each in allocated if each["type"] == "gres" and each["name"] == "gpu")
    duration_s = number(str(record["time"]["elapsed"]), "elapsed", where)
    reason = _useless(record["state"]["current"][0], gpus, duration_s)
    if reason:
        return reason
    limit = record["time"].get("limit") or {}
    estimate_s = limit["number"] * 60.0 if limit.get("set") and not limit.get("infinite") else None
    submit_s = number(str(record["time"]["submission"]), "submission", where)
    return Row(where, str(record["job_id"]), submit_s, gpus, duration_s, estimate_s)
