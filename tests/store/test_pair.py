"""Two daemon processes on one PostgreSQL: whatever becomes of the leader, a job is cancelled exactly once."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evalstopd.core.intent import State
from evalstopd.core.model import Phase
from evalstopd.ports import Lease
from evalstopd.pulse import pulse_rows, told
from evalstopd.store import migrate
from evalstopd.store.sql import SqlStore
from tests.fakes.world import RISE_AND_FALL
from tests.store.proxy import Wire
from tests.store.shared_world import make_world, opened

TICK_S, LEASE_S, SLURM_S = 8.0, 6.0, 1.0
PROGRAM = Path(__file__).with_name("pair_daemon.py")
SETTINGS = f"""
[slurm]
time_limit_s = {SLURM_S}
[mlflow]
tracking_uri = "http://127.0.0.1:9"
server = "authenticated"
[rules]
rung = "enforce"
rule = "k-declines:k=2"
metric = "score"
mode = "max"
[enforce]
override = "a test"
notice_s = 0.0
[daemon]
tick_s = {TICK_S}
kill_switch = "/nonexistent/STOP"
"""


class Pair:
    """Two daemons, A with a gate before its cancel and a wire that can be cut, and the world they share."""

    def __init__(self, folder: Path, url: str, wired_url: str) -> None:
        self.folder, self.gate, self.world = folder, folder / "gate", folder / "world"
        self._urls = {"a": wired_url, "b": url}
        self.store = SqlStore(url)
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.gate.mkdir()
        make_world(self.world)

    def start(self, name: str, lease: str = "evalstopd", world: Path | None = None) -> None:
        config = self.folder / f"{name}.toml"
        store = f'[store]\nurl = "{self._urls[name]}"\nlease = "{lease}"\nlease_s = {LEASE_S}\n'
        config.write_text(SETTINGS + store)
        command = [sys.executable, "-u", str(PROGRAM), str(world or self.world), str(self.gate) if name == "a" else "-"]
        root = Path(__file__).parents[2]
        paths = os.pathsep.join(str(root / each) for each in (".", "sim", "migrations", "examples"))
        with self.log(name).open("ab") as out:
            self.running[name] = subprocess.Popen(
                command, env=os.environ | {"EVALSTOPD_CONFIG": str(config), "PYTHONPATH": paths}, stdout=out, stderr=out
            )

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def said(self, name: str, words: str) -> bool:
        return words in self.log(name).read_text(errors="replace")

    def lease(self) -> Lease | None:
        return self.store.leader("evalstopd")

    def led_by(self, epoch: int) -> bool:
        lease = self.lease()
        return lease is not None and lease.epoch == epoch

    def train(self) -> str:
        """Submit a job that has risen and fallen, each checkpoint still there."""
        with opened(self.world) as parts:
            job = parts["cluster"].submit(1001, 8, "mlflow_run=r1")
            run = parts["tracker"].add_run("r1")
            run.tags["slurm.job_id"] = str(parts["cluster"].jobs[job].raw_id)
            for number, score in enumerate(RISE_AND_FALL, 1):
                parts["tracker"].log("r1", number * 10, score, timestamp_ms=int(time.time() * 1000))
                folder = f"{parts['cluster'].jobs[job].work_dir}/out-r1"
                parts["keeper"].save(folder, number * 10, keep_last=10, at_s=time.time() + 1)
        return str(job)

    def cancelled(self) -> list[tuple[str, int]]:
        with opened(self.world) as parts:
            return list(parts["cluster"].cancelled)

    def requests(self) -> int:
        """Return how often Slurm was asked to cancel, whether or not there was a job to cancel any more."""
        with opened(self.world) as parts:
            return int(parts["cluster"].calls.count("cancel"))

    def ended(self, job: str) -> bool:
        with opened(self.world) as parts:
            return bool(parts["cluster"].jobs[job].phase is Phase.ENDED)

    def states(self) -> list[State]:
        return [each.state for each in self.store.intents_of([watch.key for watch in self.store.recent(10)])]

    def wait(self, holds: Callable[[], bool], what: str, within_s: float = 90.0) -> float:
        """Wait until something holds; return how long that took."""
        began = time.monotonic()
        while not holds():
            if time.monotonic() - began > within_s:
                logs = "\n".join(f"{name}:\n{self.log(name).read_text(errors='replace')}" for name in self.running)
                raise AssertionError(f"not within {within_s:g} s: {what}\n{logs}")
            time.sleep(0.05)
        return time.monotonic() - began

    def close(self) -> None:
        (self.gate / "go").touch()
        for process in self.running.values():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait(60)
        self.store.close()


@pytest.fixture
def wire(postgresql_url: str) -> Iterator[Wire]:
    server = Path(postgresql_url.partition("host=")[2])
    with (
        tempfile.TemporaryDirectory(prefix="evalstopd-wire-", dir="/tmp") as folder,
        Wire(Path(folder), server) as made,
    ):
        yield made


@pytest.fixture
def pair(tmp_path: Path, empty_postgresql_url: str, wire: Wire) -> Iterator[Pair]:
    migrate.upgrade(empty_postgresql_url)
    made = Pair(tmp_path, empty_postgresql_url, f"postgresql://tests@/postgres?host={wire.folder}")
    yield made
    made.close()


def bring_to_the_cancel(pair: Pair) -> str:
    """Let A lead and B stand by, and bring A to where it is about to cancel the job."""
    pair.start("a")
    pair.wait(lambda: pair.led_by(1), "A leads")
    pair.start("b")
    pair.wait(lambda: pair.said("b", "stands by"), "B stands by")
    job = pair.train()
    pair.wait((pair.gate / "reached").exists, "A is about to cancel")
    assert pair.cancelled() == []
    return job


def take_over(pair: Pair) -> None:
    """See B lead and finish the stop, in time."""
    took_s = pair.wait(lambda: pair.cancelled() != [], "B has cancelled")
    print(f"taken over and cancelled after {took_s:.1f} s, {took_s / TICK_S:.2f} ticks")

    assert pair.led_by(2)
    assert took_s <= 2 * TICK_S
    pair.wait(lambda: pair.states() == [State.CONFIRMED], "B has confirmed")


@pytest.mark.timed
@pytest.mark.slow
def test_a_leader_that_is_killed_is_replaced_within_two_ticks_and_the_job_cancelled_once(pair: Pair) -> None:
    job = bring_to_the_cancel(pair)
    pair.running["a"].kill()
    take_over(pair)

    assert pair.cancelled() == [(job, 0)]
    assert pair.requests() == 1
    assert pair.ended(job)


@pytest.mark.timed
@pytest.mark.slow
def test_a_leader_that_is_paused_is_replaced_and_does_nothing_when_it_goes_on(pair: Pair) -> None:
    job = bring_to_the_cancel(pair)
    pair.running["a"].send_signal(signal.SIGSTOP)
    take_over(pair)
    (pair.gate / "go").touch()
    pair.running["a"].send_signal(signal.SIGCONT)
    pair.wait(lambda: pair.said("a", "nothing is done: another daemon leads"), "A is refused")
    pair.wait(lambda: pair.said("a", "stands by"), "A stands by")

    assert pair.cancelled() == [(job, 0)]
    assert pair.requests() == 1
    assert pair.states() == [State.CONFIRMED]
    pair.running["b"].send_signal(signal.SIGTERM)
    assert pair.running["b"].wait(60) == 0
    took_s = pair.wait(lambda: pair.led_by(3), "A leads again, without waiting for the lease's end")
    assert took_s <= LEASE_S


@pytest.mark.timed
@pytest.mark.slow
def test_a_leader_that_is_cut_off_is_replaced_and_does_not_act_though_slurm_answers_it(pair: Pair, wire: Wire) -> None:
    job = bring_to_the_cancel(pair)
    wire.cut()
    take_over(pair)
    (pair.gate / "go").touch()
    pair.wait(lambda: pair.said("a", "nothing is done: another daemon leads"), "A is refused")

    assert pair.cancelled() == [(job, 0)]
    assert pair.requests() == 1
    assert pair.states() == [State.CONFIRMED]


@pytest.mark.slow
def test_under_another_leases_name_nobody_acts_on_a_cluster_while_its_leader_lives(pair: Pair) -> None:
    """Each has the lease that it asked for; B leads the cluster only once A is dead."""
    pair.start("a")
    pair.wait(lambda: pair.led_by(1), "A leads")
    job = pair.train()
    pair.wait((pair.gate / "reached").exists, "A is about to cancel")
    pair.start("b", lease="other")
    pair.wait(lambda: pair.said("b", "under the lease 'evalstopd'"), "B says why it does nothing")
    assert pair.said("b", "give its daemons one name in store.lease")
    assert pair.requests() == 0
    pair.running["a"].kill()
    pair.wait(lambda: pair.states() == [State.CONFIRMED], "B has cancelled and confirmed")

    assert pair.cancelled() == [(job, 0)]
    assert pair.requests() == 1


@pytest.mark.slow
def test_who_waits_under_the_lease_of_another_cluster_says_that_its_own_is_watched_by_nobody(pair: Pair) -> None:
    """Said in its log and in its row of the daemons, and over once it has a lease of its own."""

    def standing_by() -> list[str]:
        rows = pulse_rows(
            pair.store.pulses(), time.time(), TICK_S, {"evalstopd": lease} if (lease := pair.lease()) else {}
        )
        return [line for line in told(rows) if "stands by" in line]

    other = pair.folder / "other-world"
    make_world(other, "other")
    pair.start("a")
    pair.wait(lambda: pair.store.leading("c") == ("evalstopd",), "A leads its cluster")
    pair.start("b", world=other)
    pair.wait(lambda: pair.said("b", "nobody watches the cluster 'other' under the lease 'evalstopd'"), "B says so")
    pair.wait(standing_by, "B is shown")
    assert standing_by()[0].startswith("BAD ")
    pair.running["b"].kill()
    pair.running["b"].wait(60)
    pair.start("b", lease="evalstopd-other", world=other)
    pair.wait(lambda: pair.store.leading("other") == ("evalstopd-other",), "B leads its own cluster")


@pytest.mark.slow
def test_both_daemons_of_a_pair_on_one_host_are_shown_and_who_leads_now(pair: Pair) -> None:
    """Killed, taken over, started again, told to end: on real processes and PostgreSQL."""

    def roles() -> dict[str, tuple[str, int, bool]]:
        rows = pulse_rows(
            pair.store.pulses(), time.time(), TICK_S, {"evalstopd": lease} if (lease := pair.lease()) else {}
        )
        return {row.name.partition("@")[2][len(host) :]: (row.role, row.pid, row.good) for row in rows}

    host = os.uname().nodename
    pair.start("a")
    pair.wait(lambda: pair.store.pulses() and pair.led_by(1), "A leads and has said so")
    pair.start("b")
    a, b = pair.running["a"].pid, pair.running["b"].pid
    pair.wait(lambda: roles() == {"": ("leads", a, True), "#2": ("stands by", b, True)}, "both are shown")
    pair.running["a"].kill()
    pair.running["a"].wait(60)
    pair.wait(lambda: roles()["#2"] == ("leads", b, True), "B leads")
    assert roles()[""][:2] == ("led", a)
    pair.start("a")
    a = pair.running["a"].pid
    pair.wait(lambda: roles() == {"#2": ("leads", b, True), "": ("stands by", a, True)}, "A is back in its place")
    pair.running["b"].terminate()
    assert pair.running["b"].wait(60) == 0
    pair.wait(lambda: roles() == {"": ("leads", a, True), "#2": ("has ended", b, False)}, "B has ended")
