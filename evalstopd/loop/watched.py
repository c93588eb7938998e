"""Which jobs of the queue are looked at: those that speak to us or are known, and those that may have a run."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from evalstopd.core.binding import Proof
from evalstopd.core.due import worth_a_look
from evalstopd.core.identity import Sighting
from evalstopd.core.model import Job, JobKey, Phase, Rung
from evalstopd.core.rules import Rules, Standing, is_governed, left_whole, site_terms, standing
from evalstopd.core.watch import Watch
from evalstopd.core.wishes import Wishes, parse_comment


@dataclass(frozen=True, slots=True)
class Seen:
    """A governed job that runs, as this pass sees it."""

    sighting: Sighting
    watch: Watch
    wishes: Wishes
    standing: Standing

    @property
    def key(self) -> JobKey:
        """Return the job's key."""
        return self.watch.key

    @property
    def job(self) -> Job:
        """Return the job."""
        return self.sighting.job

    @property
    def held(self) -> str | None:
        """Return the run that this life was bound to by another proof than its comment, if any."""
        of_this_life = self.watch.read_life == self.watch.life.restarts
        return self.watch.run_id if of_this_life and self.watch.proof in (Proof.MAC, Proof.TAG) else None

    @property
    def run_id(self) -> str | None:
        """Return the run that the job goes by: the comment's, else the one it holds."""
        return self.wishes.run_id or self.held

    @property
    def speaks(self) -> bool:
        """Tell whether the job is watched without any run being found for it."""
        return self.wishes.run_id is not None or bool(self.wishes.faults) or self.sighting.watch is not None

    def seeks(self, rules: Rules, now_s: float) -> bool:
        """Tell whether a run that is proven to be this job's is to be looked for in this pass."""
        if rules.trust.comment_only or self.run_id is not None or self.wishes.faults:
            return False
        terms = self.standing.terms
        if terms.rung is Rung.OFF or not rules.names_metrics(terms.metric):
            return False
        return worth_a_look(now_s - (self.job.started_s or now_s), now_s, rules.tick_s)


def look_at(sightings: Iterable[Sighting], rules: Rules, now_s: float) -> Iterable[Seen]:
    """Yield the governed running jobs that speak to us, are known or may have a run, with their watch as it is now."""
    for sighting in sightings:
        job = sighting.job
        if job.phase not in (Phase.RUNNING, Phase.SUSPENDED) or not is_governed(job, rules):
            continue
        wishes = parse_comment(job.comment)
        silent = wishes.run_id is None and not wishes.faults and sighting.watch is None
        if silent and rules.trust.comment_only:
            continue
        watch = _present(sighting.watch or _first(sighting, rules, now_s), job)
        yield Seen(sighting, watch, wishes, _standing(watch, wishes, rules, alone=job.het_id is None))


def _standing(watch: Watch, wishes: Wishes, rules: Rules, *, alone: bool) -> Standing:
    if not alone:
        return left_whole(watch.terms)
    return standing(watch.terms, wishes, rules, partition=watch.partition)


def _first(sighting: Sighting, rules: Rules, now_s: float) -> Watch:
    return Watch(sighting.key, sighting.job.life, now_s, site_terms(rules, sighting.job.partition))


def _present(watch: Watch, job: Job) -> Watch:
    """Return the watch as the queue shows its job; the same object where nothing has changed, as for most."""
    if watch.vanished_s is None and _shown(watch) == _shown(job):
        return watch
    return replace(
        watch,
        life=job.life,
        user=job.user,
        account=job.account,
        partition=job.partition,
        name=job.name,
        gpus=job.gpus,
        nodes=job.nodes,
        started_s=job.started_s,
        limit_end_s=job.limit_end_s,
        vanished_s=None,
    )


def _shown(of: Watch | Job) -> tuple[object, ...]:
    """Return what a watch takes over from the queue."""
    return (
        of.life, of.user, of.account, of.partition, of.name, of.gpus, of.nodes, of.started_s, of.limit_end_s,
    )  # fmt: skip
