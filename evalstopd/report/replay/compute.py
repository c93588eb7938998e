"""Runs of the past joined to the jobs that accounting knows, so that what a rule saves is told in GPU-hours."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evalstopd.errors import WrongUsage
from evalstopd.report.replay.history import History, JobTag
from evalstopd.report.replay.intervals import Estimate, mean
from evalstopd.report.replay.judge import Outcome
from evalstopd.slurmtext.sacct import FIELDS, Accounted, read_sacct

_NEEDED = (*FIELDS, "JobIDRaw", "Account")
_HOUR_S = 3600.0
_LOSES = 0.10
Runs = Mapping[tuple[str, str], "Job"]


@dataclass(frozen=True, slots=True)
class Job:
    """What accounting tells of a job: all its lives' GPU-hours, and the GPUs that its last life had."""

    account: str
    gpus: int
    gpu_hours: float


@dataclass(frozen=True, slots=True)
class Joined:
    """Which runs are which jobs; `missing` counts the primary curves that are not, by why."""

    runs: Runs = field(repr=False)
    missing: Mapping[str, int] = field(default_factory=dict)

    def job_of(self, history: History) -> Job | None:
        """Return the job of a curve; None for one that is not joined, or not its run's primary one."""
        return self.runs.get(_name(history)) if history.primary else None


@dataclass(frozen=True, slots=True)
class Hours:
    """What a rule saves of the joined jobs' GPU-hours; `account` is empty for all of them.

    `losing` is the part of `saved` that comes from runs that lose more than a tenth of their range by the stop: it
    is no saving to their owners.
    """

    rule: str
    account: str
    jobs: int
    gpu_hours: float
    saved: Estimate
    losing: float


def read_jobs(path: Path) -> tuple[tuple[Accounted, ...], Mapping[str, int]]:
    """Return the lives of jobs in a file of sacct's (a table, or JSON), without steps; and how many records were lost.

    Raises WrongUsage.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise WrongUsage(f"{path}: cannot be read as sacct's output: {error}") from None
    records = list(read_sacct(str(path), text, _NEEDED))
    lives = tuple(each for each in records if not isinstance(each, str) and not each.is_step)
    return lives, dict(sorted(Counter(each for each in records if isinstance(each, str)).items()))


def join(histories: Sequence[History], lives: Sequence[Accounted]) -> Joined:
    """Join each run's primary curve to its job by the raw id in the run's tags.

    A tag proves nothing, so this is for looking at history only. A job that several runs name is nobody's: its hours
    would be counted twice.
    """
    by_id: dict[str, list[Accounted]] = {}
    for life in lives:
        by_id.setdefault(life.raw_id, []).append(life)
    primary = [each for each in histories if each.primary]
    claims = Counter(each.job for each in primary)
    found: dict[tuple[str, str], Job] = {}
    missing: Counter[str] = Counter()
    for each in primary:
        answer = _job(each.job, by_id, claims)
        if isinstance(answer, str):
            missing[answer] += 1
        else:
            found[_name(each)] = answer
    return Joined(found, dict(sorted(missing.items())))


def hours(rule: str, found: Iterable[Outcome], joined: Joined) -> tuple[Hours, ...]:
    """Return what a rule saves, over all joined jobs first, then by account in the order of their hours."""
    pairs = [(each, job) for each in found if (job := joined.job_of(each.history)) is not None]
    accounts = sorted({job.account for _, job in pairs})
    rows = [_hours(rule, name, [pair for pair in pairs if pair[1].account == name]) for name in accounts]
    return (_hours(rule, "", pairs), *sorted(rows, key=lambda row: -row.gpu_hours))


def saved_hours(each: Outcome, job: Job) -> float:
    """Return the GPU-hours from the stop's eval to the run's last one, never more than the job had.

    What the job did after its last eval counts as not saved; an owner's notice is not taken off.
    """
    return min(job.gpu_hours, job.gpus * max(0.0, each.left_s or 0.0) / _HOUR_S)


def _name(history: History) -> tuple[str, str]:
    return history.source, history.name


def _job(
    tag: JobTag | None, by_id: Mapping[str, Sequence[Accounted]], claims: Mapping[JobTag | None, int]
) -> Job | str:
    """Return the job that a tag names, or why there is none."""
    if tag is None:
        return "no slurm.job_id tag"
    if claims[tag] > 1:
        return "several runs name the job"
    lives = [life for life in by_id.get(tag.raw_id, ()) if tag.cluster in ("", life.cluster) or not life.cluster]
    if not lives:
        return "job not in the accounting file"
    if len({(life.cluster, life.user) for life in lives}) > 1:
        return "several jobs of this id"
    return _of_lives(sorted(lives, key=lambda life: life.submit_s))


def _of_lives(lives: Sequence[Accounted]) -> Job | str:
    if not lives[-1].is_over:
        return "job had not ended"
    gpu_hours = sum(life.gpus * life.elapsed_s for life in lives) / _HOUR_S
    return Job(lives[-1].account, lives[-1].gpus, gpu_hours) if gpu_hours else "no GPU time"


def _hours(rule: str, account: str, pairs: Sequence[tuple[Outcome, Job]]) -> Hours:
    saved = [saved_hours(each, job) for each, job in pairs]
    losing = sum(hours for hours, (each, _) in zip(saved, pairs, strict=True) if each.lost > _LOSES)
    return Hours(rule, account, len(pairs), sum(job.gpu_hours for _, job in pairs), _total(saved), losing)


def _total(saved: Sequence[float]) -> Estimate:
    """Return the sum with the interval of the mean, times the jobs."""
    each, count = mean(saved), len(saved)
    low, high = (None if end is None else max(0.0, end * count) for end in (each.low, each.high))
    return Estimate(sum(saved), low, high, count)
