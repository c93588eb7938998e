"""What `simulate` does: run the arms that were asked for and give back text or JSON."""

import json
from dataclasses import asdict, dataclass

from evalstopd_sim.arms import Setting
from evalstopd_sim.bounds import MOST_PROCESSES, whole
from evalstopd_sim.pool import Task, workers
from evalstopd_sim.request import Request, arms, setting
from evalstopd_sim.rows import Row, as_json, label, rows
from evalstopd_sim.show import about, daemon_lines, side_by_side


@dataclass(frozen=True, slots=True)
class Answer:
    """What was asked, the world it made, and one row for each arm."""

    asked: Request
    world: Setting
    rows: list[Row]


def simulate(asked: Request, processes: int = 1) -> Answer:
    """Run base and rule over the seeds. Raises WrongUsage, in one line, for what makes no sense."""
    whole("--processes", processes, MOST_PROCESSES)
    world, chosen = setting(asked), arms(asked)
    for arm in chosen:
        label(arm)
    tasks = [Task(world, seed, chosen) for seed in seeds_of(asked)]
    with workers(min(processes, len(tasks))) as run:
        return Answer(asked, world, rows(chosen, list(run(tasks))))


def text(answer: Answer) -> str:
    """Return the table with what it rests on."""
    lines = [*about(answer.world, seeds_of(answer.asked)), "", *side_by_side(answer.rows), *daemon_lines(answer.rows)]
    return "\n".join(lines)


def as_json_text(answer: Answer) -> str:
    """Return settings and rows as JSON."""
    shown = {"settings": asdict(answer.asked), "rows": [as_json(row) for row in answer.rows]}
    return json.dumps(shown, indent=2, allow_nan=False)


def seeds_of(asked: Request) -> range:
    """Return the seeds that were asked for."""
    return range(asked.first_seed, asked.first_seed + asked.seeds)
