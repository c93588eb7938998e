"""What `simulate` does: run the arms that were asked for and give back text or JSON."""

import json
from dataclasses import asdict

from evalstopd_sim.pool import Task, workers
from evalstopd_sim.request import Request, arms, setting
from evalstopd_sim.rows import Row, as_json, label, rows
from evalstopd_sim.show import about, side_by_side


def simulate(asked: Request, processes: int = 1) -> list[Row]:
    """Run base and rule over the seeds. Raises Misconfigured, in one line, for what makes no sense."""
    world, chosen = setting(asked), arms(asked)
    for arm in chosen:
        label(arm)
    tasks = [Task(world, seed, chosen) for seed in seeds_of(asked)]
    with workers(min(processes, len(tasks))) as run:
        return rows(chosen, list(run(tasks)))


def text(asked: Request, found: list[Row]) -> str:
    """Return the table with what it rests on."""
    return "\n".join([*about(setting(asked), seeds_of(asked)), "", *side_by_side(found)])


def as_json_text(asked: Request, found: list[Row]) -> str:
    """Return settings and rows as JSON."""
    return json.dumps({"settings": asdict(asked), "rows": [as_json(row) for row in found]}, indent=2, allow_nan=False)


def seeds_of(asked: Request) -> range:
    """Return the seeds that were asked for."""
    return range(asked.first_seed, asked.first_seed + asked.seeds)
