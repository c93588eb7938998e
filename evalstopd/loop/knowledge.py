"""What is known of waiting jobs beside the queue: their estimated length, what they attained, how their loss fell."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evalstopd.core.lineup import Estimate, Known, PriorityRules, Waiting
from evalstopd.core.losses import drop_per_s
from evalstopd.errors import EvalstopError, Rejected, Unavailable
from evalstopd.loop.report import Tally
from evalstopd.ports import Book, EndingQuery, Ports, RunQuery, RunReading


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Asks as little as the policy needs: nothing at all for jobs that have never run."""

    ports: Ports
    estimate: Estimate

    def of(self, waiting: Sequence[Waiting], book: Book, asked: PriorityRules, tally: Tally) -> Known:
        """Return what is known; who cannot be asked about counts as one who has not run."""
        again = [each for each in waiting if not each.apart and len(each.jobs) == 1 and each.job.restarts > 0]
        attained = self._attained(again, tally) if asked.policy.preemptive else {}
        return Known(self.estimate(waiting), attained, self._loss_drops(again, book, asked, tally))

    def _attained(self, again: Sequence[Waiting], tally: Tally) -> Mapping[str, float]:
        """Ask accounting, in one call, about jobs that were requeued; their lives are over, so once is enough."""
        queries = {EndingQuery(each.job.job_id, each.job.life): each.name for each in again if each.job.is_single}
        if not queries:
            return {}
        try:
            found = self.ports.cluster.served(list(queries))
        except (Unavailable, Rejected) as error:
            tally.trouble(f"priorities, accounting: {error}")
            return {}
        return {queries[query]: ran_s for query, ran_s in found.items()}

    def _loss_drops(
        self, again: Sequence[Waiting], book: Book, asked: PriorityRules, tally: Tally
    ) -> Mapping[str, float]:
        """Read the training loss of jobs that ran before, of bound runs alone."""
        if not asked.loss_metric:
            return {}
        runs = {(each.key.job_id, each.key.uid): each.run_id for each in book.watches if each.run_id}
        queries = {
            each.name: RunQuery(runs[each.name, each.job.uid], asked.loss_metric)
            for each in again
            if (each.name, each.job.uid) in runs
        }
        answers = self.ports.metrics.read(list(dict.fromkeys(queries.values()))) if queries else {}
        for error in {str(each) for each in answers.values() if isinstance(each, EvalstopError)}:
            tally.trouble(f"priorities, MLflow: {error}")
        found = {name: answers.get(query) for name, query in queries.items()}
        drops = {name: drop_per_s(read.points) for name, read in found.items() if isinstance(read, RunReading)}
        return {name: drop for name, drop in drops.items() if drop is not None}
