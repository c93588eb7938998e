"""The main job on a real Slurm cluster and a real MLflow server, with two users and an unprivileged daemon."""

import json
import os
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from demo.rig import users
from demo.rig.mlflow_server import MlflowServer

from evalstopd.core.intent import State
from tests.e2e.site import FALL, RISE, Site

pytestmark = [pytest.mark.slurm, pytest.mark.mlflow]
ALICE, BOB = users.ALICE, users.BOB
MakeSite = Callable[..., Site]


def test_an_over_optimising_job_is_stopped_its_best_kept_and_its_gpus_go_on(make_site: MakeSite) -> None:
    """Issue, case 1: stop after the k-th decline, pinned best although rotated, next job, words that agree."""
    site = make_site(cold=True)
    falling, rising = site.train(ALICE, FALL), site.train(BOB, RISE)
    waiting = site.cluster.sbatch(BOB, "#!/bin/sh\nsleep 30\n", "--gpus=4", "--nodes=1")
    site.wait(lambda: {"told", "handed"} <= site.kinds(falling), "the stop and its heirs")

    intent = site.intents(falling)[0]
    assert intent.evidence.trigger_step == 50
    assert intent.evidence.declines == 2
    assert site.accounted(falling) == "CANCELLED"
    assert site.state(waiting) == "RUNNING"
    assert site.state(rising) == "RUNNING"
    assert intent.handed_to == (waiting,)
    check_pin(site, falling, Path(intent.kept_path))
    check_words(site, falling)
    kinds = [kind for kind, _ in site.events(falling)]
    # Warned at the decision where one reading brought both low evals, else before it; told when the program has ended.
    assert [kind for kind in kinds if kind not in ("warning", "told")] == [
        "planned", "warned", "promoted", "cancelling", "cancelled", "confirmed", "run", "telling", "handed",
    ]  # fmt: skip
    assert kinds.index("told") > kinds.index("telling")
    assert site.intents(rising) == ()


def check_pin(site: Site, job: str, best: Path) -> None:
    """The best checkpoint is whole, the owner's, and gone from the trainer's own folder."""
    folder = site.cluster.work(ALICE) / f"out-{job}"
    assert not (folder / "checkpoint-30").exists()
    assert os.readlink(best) == "step-30"
    assert sorted(path.name for path in best.iterdir()) == ["model.safetensors", "trainer_state.json"]
    assert {path.owner() for path in (best, *best.iterdir())} == {ALICE}
    assert (best.stat().st_mode & 0o777) == 0o500


def check_words(site: Site, job: str) -> None:
    """Tags, run status, events and the daemon's notice say the same."""
    intent = site.intents(job)[0]
    run = site.run(intent.evidence.run_id)
    events = dict(site.events(job))
    reason = intent.evidence.reason
    assert run["status"] == "KILLED"
    assert run["tags"]["evalstop.reason"] == reason == events["planned"]
    assert run["tags"]["evalstop.state"] == intent.state.value == "confirmed"
    assert run["tags"]["evalstop.checkpoint"] == intent.kept_path
    assert intent.kept_path in events["promoted"]
    assert reason in events["confirmed"]
    # The owner is told once the end is in the book.
    site.wait(lambda: reason in site.service.log.read_text(), "the notice")


def test_observe_keeps_book_and_touches_nothing(make_site: MakeSite) -> None:
    """Issue, case 2: the observe rung."""
    site = make_site(rules={"rung": "observe"}, enforce={"override": ""})
    job = site.train(ALICE, FALL)
    site.wait(lambda: site.evals(job) == 8, "all evals read")
    watch = site.watch(job)
    assert watch is not None
    booked = site.store.would_be_of([watch.key])

    assert [stop.evidence.trigger_step for stop in booked] == [50]
    assert site.state(job) == "RUNNING"
    assert not (site.cluster.work(ALICE) / ".evalstop" / f"{watch.key.cluster}-{job}-{watch.key.submitted_s}").exists()
    assert not [tag for tag in site.run(watch.run_id or "")["tags"] if tag.startswith("evalstop.")]


def test_warn_says_so_and_stops_nothing(make_site: MakeSite) -> None:
    """Issue, case 2: the warn rung."""
    site = make_site(rules={"rung": "warn"}, enforce={"override": ""})
    job = site.train(ALICE, FALL)
    site.wait(lambda: site.evals(job) == 8, "all evals read")

    assert site.state(job) == "RUNNING"
    assert [intent.state for intent in site.intents(job)] == [State.WARNED]
    assert f"evalstopd keep {job}" in site.service.log.read_text()


def test_keep_by_the_owner_wins_and_needs_neither_store_nor_daemon(make_site: MakeSite) -> None:
    """Issue, case 2: the veto, written while the daemon is dead and its store is away."""
    site = make_site(enforce={"notice_s": 4.0})
    job = site.train(ALICE, FALL)
    site.wait(lambda: site.intents(job), "the decision")
    site.service.kill_daemon()
    hidden = site.service.database.parent.rename(site.service.directory / "hidden")
    by_bob = site.service.command("keep", job, user=BOB)
    by_alice = site.service.command("keep", job, user=ALICE)
    without_store = site.service.command("tick")
    hidden.rename(site.service.database.parent)
    site.service.start_daemon()
    site.wait(lambda: site.intents(job)[0].closed, "the veto")

    assert by_bob.returncode == 1
    assert "evalstop=keep" in by_alice.stdout
    assert without_store.returncode != 0
    assert site.intents(job)[0].state is State.VETOED
    assert site.state(job) == "RUNNING"
    assert "mlflow_run=" in site.cluster.squeue("-j", job, "-o", "%k")


def test_a_tick_whose_store_is_away_acts_on_nothing(make_site: MakeSite) -> None:
    """Issue, case 2: no store, no action; and the daemon goes on once it is back."""
    site = make_site(enforce={"notice_s": 3.0})
    job = site.train(ALICE, FALL)
    site.wait(lambda: [i for i in site.intents(job) if i.state is State.WARNED], "the warning")
    os.rename(site.service.database, f"{site.service.database}.away")
    before = site.service.log.stat().st_size
    site.wait(lambda: site.service.log.read_text()[before:].count("nothing done") >= 8, "ticks without a store")
    site.service.database.mkdir()
    before = site.service.log.stat().st_size
    site.wait(lambda: site.service.log.read_text()[before:].count("file was replaced") >= 8, "ticks beside another")
    assert site.state(job) == "RUNNING"
    site.service.database.rmdir()
    os.rename(f"{site.service.database}.away", site.service.database)
    site.wait(lambda: site.intents(job)[0].state is State.CONFIRMED, "the stop")

    assert site.accounted(job) == "CANCELLED"


def test_slurmctld_down_and_up_again(make_site: MakeSite) -> None:
    """Issue, case 3: without a controller nothing is done, and the next tick goes on."""
    site = make_site()
    job = site.train(ALICE, FALL)
    site.wait(lambda: site.evals(job) >= 3, "three evals")
    site.cluster.stop_controller()
    before = site.service.log.stat().st_size
    try:
        site.wait(lambda: "nothing decided" in site.service.log.read_text()[before:], "a tick without a controller")
        assert site.intents(job) == ()
    finally:
        site.cluster.start_controller()
    site.wait(lambda: site.intents(job) and site.intents(job)[0].state is State.CONFIRMED, "the stop")

    assert site.accounted(job) == "CANCELLED"
    assert site.service.daemon_ended(0.1) is None


def test_mlflow_down_and_up_again(make_site: MakeSite, mlflow_server: MlflowServer) -> None:
    """Issue, case 3: a dead server stops no job; what was logged before is read when it is back."""
    site = make_site(enforce={"notice_s": 7.0})
    job = site.train(ALICE, FALL)
    site.wait(lambda: site.intents(job) and site.evals(job) == 8, "the decision, and the last eval")
    mlflow_server.kill()
    before = site.service.log.stat().st_size
    try:
        site.wait(lambda: site.service.log.read_text()[before:].count("MLflow") >= 6, "ticks without MLflow")
        assert site.state(job) == "RUNNING"
    finally:
        mlflow_server.start()
    site.wait(lambda: site.intents(job)[0].state is State.CONFIRMED, "the stop")

    assert site.accounted(job) == "CANCELLED"


def test_a_tick_by_hand_tells_by_its_exit_code_that_mlflow_could_not_be_read(
    make_site: MakeSite, mlflow_server: MlflowServer
) -> None:
    """A cron job sees no log: the pass is made, for what was decided before; the code says that nobody was judged."""
    site = make_site(start=False, rules={"rung": "observe"})
    job = site.train(BOB, RISE, pace_s=15.0)
    site.wait(lambda: site.state(job) == "RUNNING", "the job runs")
    site.wait(lambda: site.service.command("tick").returncode == 0 and site.evals(job) > 0, "a pass that reads it")
    mlflow_server.kill()
    try:
        done = pass_that_asks(site)
        dry = pass_that_asks(site, "--dry-run")
    finally:
        mlflow_server.start()
    said = json.loads(done.stdout)

    assert (done.returncode, said["good"], said["mlflow"]) == (3, True, "failed"), done
    assert "cannot connect" in said["summary"]
    assert dry.returncode == 3
    assert site.service.command("tick").returncode == 0


def pass_that_asks(site: Site, *options: str) -> CompletedProcess[str]:
    """Make passes until the job is due to be read; return the last one."""
    passes: list[CompletedProcess[str]] = []

    def asked() -> bool:
        passes.append(site.service.command("tick", "--json", *options))
        return bool(json.loads(passes[-1].stdout)["mlflow"] != "not asked")

    site.wait(asked, "a pass that asks MLflow")
    return passes[-1]


class Error500(BaseHTTPRequestHandler):
    """A server whose every answer is an error."""

    def do_GET(self) -> None:
        self.send_error(500)

    do_POST = do_GET  # noqa: N815  the name is the base class's

    def log_message(self, *arguments: object) -> None:
        del arguments


@pytest.fixture
def broken_mlflow() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Error500)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_mlflow_answering_500_and_well_again(make_site: MakeSite, broken_mlflow: str) -> None:
    """Issue, case 3: errors are no evals; a daemon started on the real server finds everything."""
    site = make_site(start=False)
    site.service.configure(mlflow={"tracking_uri": broken_mlflow})
    site.service.start_daemon()
    job = site.train(ALICE, FALL, pace_s=0.3)
    site.wait(lambda: site.service.log.read_text().count("MLflow: ") >= 5, "ticks with errors")
    assert site.intents(job) == ()
    assert site.service.stop_daemon() == 0
    site.service.configure()
    site.service.start_daemon()
    site.wait(lambda: "abandoned" in dict(site.events(job)), "the decision, and that nothing safe is left to stop on")

    assert site.evals(job) == 8
    assert site.state(job) == "RUNNING"
    assert "no safe checkpoint" in dict(site.events(job))["abandoned"]


@pytest.mark.xdist_group("killed daemons")  # a worker's time of their own
@pytest.mark.parametrize("effect", ["pin", "publish", "cancel", "mark_killed", "tell"])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_in_the_middle_of_an_intent_and_started_again(make_site: MakeSite, effect: str, moment: str) -> None:
    """Issue, case 4: SIGKILL round five effects of an intent, before and after each: one cancel, nothing forgotten."""
    site = make_site(start=False)
    wrapper = site.service.directory / "fused_daemon.py"
    shutil.copy(Path(__file__).with_name("fused_daemon.py"), wrapper)
    wrapper.chmod(0o755)
    site.service.start_daemon(wrapper=wrapper, arguments=(effect, moment))
    # Killed before anything is pinned, the next daemon must come before the trainer rotates its best away.
    job = site.train(ALICE, FALL, pace_s=2.5 if effect == "pin" else 1.0)
    site.wait(lambda: site.service.daemon_ended(0.1) == -9, "the daemon is killed")
    site.service.start_daemon()
    site.wait(lambda: site.intents(job) and site.intents(job)[0].state is State.CONFIRMED, "the stop")

    log = (site.cluster.directory / "log" / "slurmctld.log").read_text()
    assert len(re.findall(rf"REQUEST_KILL_JOB JobId={job}\b", log)) == 1
    assert [kind for kind, _ in site.events(job)].count("confirmed") == 1
    check_pin(site, job, Path(site.intents(job)[0].kept_path))
    check_words(site, job)


def test_sigterm_ends_the_daemon_cleanly(make_site: MakeSite) -> None:
    """The daemon says READY as systemd wants it (the rig waits for it), and exits with 0 at SIGTERM."""
    site = make_site(cold=True)

    assert site.service.stop_daemon() == 0


def test_check_says_in_plain_words_what_is_wrong(make_site: MakeSite, broken_mlflow: str) -> None:
    site = make_site(cold=True)
    assert all(each["good"] for each in site.service.json("check"))
    site.service.configure(mlflow={"tracking_uri": broken_mlflow}, keeper={"socket": "/nowhere/keeper.sock"})
    site.service.kill_switch.touch()
    bad = {each["what"]: each["text"] for each in site.service.json("check") if not each["good"]}

    assert set(bad) == {"mlflow", "mlflow server", "keeper", "kill switch"}


def test_a_job_that_resumes_a_fallen_run_is_not_stopped_for_the_fall_of_the_job_before(make_site: MakeSite) -> None:
    """What the run holds when the job first reads it is history: chained jobs that resume one run are ordinary."""
    site = make_site()
    first = site.train(ALICE, FALL, words="evalstop=observe")
    site.wait(lambda: site.evals(first) == 8, "all evals of the first job read")
    watch = site.watch(first)
    assert watch is not None
    site.cluster.as_user(ALICE, ["scancel", first])
    second = site.train(ALICE, "0.5", more=f"--run {watch.run_id}")
    site.wait(lambda: site.evals(second) == 8, "the second job has the run's curve")
    ticks = site.service.log.read_text().count("watched")
    site.wait(lambda: site.service.log.read_text().count("watched") > ticks + 5, "some more ticks")

    assert site.intents(second) == ()
    assert site.state(second) == "RUNNING"
