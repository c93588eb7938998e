"""Traces as CSV with a header: job_id, submit or submit_s, gpus, duration or duration_s; others are ignored."""

import csv
from collections.abc import Iterator, Mapping
from math import ceil

from evalstopd.errors import WrongUsage
from evalstopd.slurmtext.numbers import number
from evalstopd_sim.traces.row import Row


def read_csv(name: str, lines: list[str]) -> Iterator[Row | str]:
    """Yield the rows of a CSV trace. A share of a GPU counts as a whole one; jobs without GPUs or length are out."""
    reader = csv.reader(lines)
    header = next(reader, [])
    places = {_plain(title): place for place, title in enumerate(header)}
    for needed in ("job_id", "submit", "gpus", "duration"):
        if needed not in places:
            raise WrongUsage(f"{name}:1: the header has no column {needed}; it has: {', '.join(header)[:200]!a}")
    for cells in reader:
        if cells:
            yield _row(f"{name}:{reader.line_num}", cells, places, len(header))


def _row(where: str, cells: list[str], places: Mapping[str, int], width: int) -> Row | str:
    if len(cells) != width:
        raise WrongUsage(f"{where}: {len(cells)} fields where the header has {width}")
    cell = {title: cells[place] for title, place in places.items()}
    if not cell["duration"]:
        return "no running time"
    gpus = ceil(number(cell["gpus"], "gpus", where))
    duration_s = number(cell["duration"], "duration", where)
    if gpus == 0 or duration_s == 0:
        return "no GPU" if gpus == 0 else "no running time"
    return Row(where, cell["job_id"], number(cell["submit"], "submit", where), gpus, duration_s)


def _plain(title: str) -> str:
    return title.strip().lower().removesuffix("_s")
