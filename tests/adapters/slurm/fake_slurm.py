"""A stand-in for Slurm's programs behind the runner: it prints what it is told to, in the format it is asked for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from evalstopd.adapters.slurm.run import Answer

RUNNING = {
    "JobID": "7",
    "ArrayJobID": "7",
    "ArrayTaskID": "N/A",
    "HetJobID": "N/A",
    "UserID": "1001",
    "UserName": "alice",
    "State": "RUNNING",
    "SubmitTime": "1796002372",
    "StartTime": "1796002373",
    "EndTime": "NONE",
    "RestartCnt": "0",
    "NumNodes": "1",
    "NumTasks": "1",
    "tres-alloc": "cpu=1,node=1,billing=1,gres/gpu=1",
    "tres-per-job": "N/A",
    "tres-per-node": "gres:gpu:1",
    "tres-per-task": "N/A",
    "Account": "ml",
    "QOS": "normal",
    "Partition": "gpu",
    "PriorityLong": "1000",
    "Nice": "0",
    "NodeList": "n0",
    "EligibleTime": "1796002372",
    "TimeLimit": "1:40:00",
    "Reason": "None",
    "Requeue": "1",
    "Cluster": "evs",
    "Comment": "mlflow_run=abc",
    "Name": "train",
    "WorkDir": "/home/alice",
}


def record(**changes: str) -> dict[str, str]:
    """Return a running job of alice's as squeue would show it; keywords spell `-` as `_`."""
    changed = {name.replace("_", "-"): value for name, value in changes.items()}
    assert changed.keys() <= RUNNING.keys()
    return RUNNING | changed


def numbered(count: int, **changes: str) -> list[dict[str, str]]:
    return [record(JobID=str(n), ArrayJobID=str(n), **changes) for n in range(1, count + 1)]


def render(records: Sequence[Mapping[str, str]], form: str) -> str:
    """Print records in a --Format of `name:suffix` fields."""
    fields = [part.partition(":") for part in form.split(",")]
    return "".join("".join(row[name] + suffix for name, _, suffix in fields) + "\n" for row in records)


@dataclass
class FakeSlurm:
    """The programs' answers by name; `squeue` prints `records` unless an answer is set for it."""

    records: Sequence[Mapping[str, str]] = ()
    answers: dict[str, Answer | Exception] = field(default_factory=dict)
    tamper: Callable[[str], str] = str
    seen: list[tuple[str, ...]] = field(default_factory=list)
    formats: list[str] = field(default_factory=list)
    fed: list[str] = field(default_factory=list)

    def __call__(self, argv: Sequence[str], env: Mapping[str, str], /, feed: str = "") -> Answer:
        self.seen.append(tuple(argv))
        if feed:
            self.fed.append(feed)
        answer = self.answers.get(argv[0])
        if isinstance(answer, Exception):
            raise answer
        return answer or self._squeue(env["SQUEUE_FORMAT2"])

    def _squeue(self, form: str) -> Answer:
        self.formats.append(form)
        return Answer(0, self.tamper(render(self.records, form)), "")


def failed(code: int, complaint: str) -> Answer:
    return Answer(code, "", complaint + "\n")
