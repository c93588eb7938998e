"""The `Cluster` port, and that of past jobs, over Slurm's command line."""

from collections.abc import Iterable, Mapping, Sequence

from evalstopd.adapters.slurm import actions
from evalstopd.adapters.slurm.endings import read_endings
from evalstopd.adapters.slurm.history import read_ended
from evalstopd.adapters.slurm.ids import exact
from evalstopd.adapters.slurm.queue import configured_name, list_jobs, list_queue
from evalstopd.adapters.slurm.record import Row
from evalstopd.adapters.slurm.run import Answer, Runner, printable
from evalstopd.adapters.slurm.served import read_served
from evalstopd.core.estimates import PastLife
from evalstopd.core.model import Ending, Job
from evalstopd.core.shift import Steer
from evalstopd.errors import Unavailable
from evalstopd.ports import EndingQuery, Queue, Span


class SlurmCluster:
    """One Slurm cluster, for as long as it keeps its name; calls with nothing to ask about ask nothing.

    `run` runs the commands.
    """

    def __init__(self, run: Runner) -> None:
        self._runner = run
        self._calls = 0
        self._name = ""
        self._served: dict[EndingQuery, float] = {}

    @property
    def calls(self) -> int:
        """Return how many Slurm commands have been run so far."""
        return self._calls

    def queue(self) -> Queue:
        """List the queue. An empty one costs a second call, once, for the cluster's name."""
        jobs = self._known(list_queue(self._run))
        if not self._name:
            self._name = configured_name(self._run)
        return Queue(self._name, jobs)

    def look(self, job_ids: Sequence[str]) -> Mapping[str, Job]:
        """Show these jobs as they are now, those that ended within MinJobAge too; unknown ids are left out."""
        if not job_ids:
            return {}
        asked = exact(job_ids)
        jobs = {job.job_id: job for job in self._known(list_jobs(self._run, asked))}
        return {job_id: jobs[job_id] for job_id in asked if job_id in jobs}

    def cancel(self, job_ids: Sequence[str]) -> None:
        """Ask to end these running jobs, in one scancel. Raises Rejected or Unavailable (outcome unknown)."""
        if job_ids:
            actions.cancel(self._run, job_ids)

    def requeue_hold(self, job_id: str) -> None:
        """Ask to requeue and hold a running job. Raises NotRequeueable, Rejected, or Unavailable (outcome unknown)."""
        actions.requeue_hold(self._run, job_id)

    def put_back(self, job_id: str) -> None:
        """Ask to requeue a running job. Raises NotRequeueable, Rejected, or Unavailable (outcome unknown)."""
        actions.put_back(self._run, job_id)

    def release(self, job_id: str) -> None:
        """Let a held job go on. Raises Rejected (no right to, ended, unknown) or Unavailable."""
        actions.release(self._run, job_id)

    def signal(self, job_id: str, name: str) -> None:
        """Send a signal to the job's batch script alone. Raises Rejected or Unavailable (outcome unknown)."""
        actions.send_signal(self._run, job_id, name)

    def endings(self, queries: Sequence[EndingQuery]) -> Mapping[EndingQuery, Ending]:
        """Tell how these lives ended, from sacct; without accounting from the controller."""
        return read_endings(self._run, queries) if queries else {}

    def ended(self, span: Span) -> Sequence[PastLife]:
        """Return the lives of jobs that ended within a span, from sacct alone. Raises Unavailable."""
        return read_ended(self._run, span)

    def set_comment(self, job_id: str, comment: str) -> None:
        """Replace the comment of a job, by its address. Raises Rejected or Unavailable."""
        actions.set_comment(self._run, job_id, comment)

    def served(self, queries: Sequence[EndingQuery]) -> Mapping[EndingQuery, float]:
        """Tell how many seconds these jobs ran before these lives; what is known once is not asked for again."""
        unknown = [query for query in queries if query not in self._served]
        if unknown:
            self._served |= read_served(self._run, unknown)
        self._served = {query: self._served[query] for query in queries if query in self._served}
        return self._served

    def steer(self, asks: Sequence[Steer]) -> None:
        """Set Nice or Priority of waiting jobs, a hundred in one scontrol. Raises Rejected or Unavailable."""
        actions.steer(self._run, asks)

    def _run(self, argv: Sequence[str], env: Mapping[str, str], /, feed: str = "") -> Answer:
        self._calls += 1
        return self._runner(argv, env, feed=feed) if feed else self._runner(argv, env)

    def _known(self, rows: Iterable[Row]) -> tuple[Job, ...]:
        jobs = tuple(row.job for row in rows)
        name = jobs[0].cluster if jobs else self._name
        if self._name and name != self._name:
            raise Unavailable(f"the cluster calls itself {printable(name, 40)}, not {printable(self._name, 40)}")
        self._name = name
        return jobs
