"""Reversible stops on a real Slurm cluster: held, handed over, undone by whom it may, and never stopped again."""

import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from demo.rig import users

from evalstopd.core.credit import Credit
from evalstopd.core.intent import State
from evalstopd.core.model import Rung
from tests.e2e.site import FALL, RISE, Site

pytestmark = [pytest.mark.slurm, pytest.mark.mlflow]
ALICE, BOB, OPERATOR = users.ALICE, users.BOB, users.DAEMON
WHOLE_NODE = ("--gpus=4", "--nodes=1")
REVERSIBLE = {"stop_action": "requeue-hold"}
MakeSite = Callable[..., Site]


def fall(site: Site, *options: str) -> str:
    """Submit a job of alice's that falls, in each of its lives anew; its script overwrites its comment."""
    script = f"#!/bin/sh\nrm -rf out-$SLURM_JOB_ID\nexec {site.command(FALL)}\n"
    return site.cluster.sbatch(ALICE, script, *WHOLE_NODE, *options)


def until(site: Site, job: str, state: State) -> None:
    site.wait(lambda: site.intents(job) and site.intents(job)[-1].state is state, f"{job} is {state}", 90.0)


def shown(site: Site, job: str, fields: str) -> str:
    return site.cluster.squeue("-j", job, "-o", fields).strip()


def check_lives(site: Site, job: str, *states: str) -> None:
    """Accounting knows these lives of the job, in order, and no others; it may lag behind."""

    def accounted() -> list[str]:
        lines = site.cluster.sacct("-D", "-X", "-j", job, "-o", "State").splitlines()
        return [line.split()[0] for line in lines]

    site.wait(lambda: accounted()[-1] == states[-1] and len(accounted()) == len(states), f"{states}")
    assert accounted() == list(states)


def credits_of(site: Site, job: str) -> tuple[Credit, ...]:
    watch = site.watch(job)
    assert watch is not None
    booked: tuple[Credit, ...] = site.store.credits_of([watch.key])
    return booked


def start_anew(site: Site, job: str) -> None:
    """Lift the two minutes that a requeued job waits."""
    site.cluster.start_again(job)
    site.wait(lambda: site.state(job) == "RUNNING", "the next life")


def fallen_again(site: Site, job: str) -> bool:
    watch = site.watch(job)
    return watch is not None and (watch.last_life, watch.last_step) == (1, 80)


def test_held_then_undone_by_its_owner_then_left_alone(make_site: MakeSite) -> None:
    site = make_site(enforce=REVERSIBLE)
    job, healthy = fall(site), site.train(BOB, RISE)
    waiting = site.cluster.sbatch(BOB, "#!/bin/sh\nsleep 300\n", *WHOLE_NODE)
    site.wait(lambda: {"told", "handed"} <= site.kinds(job), "the stop and its heirs", 90.0)
    intent = site.intents(job)[0]

    assert intent.state is State.HELD
    assert intent.handed_to == (waiting,)
    assert (site.state(waiting), site.state(healthy)) == ("RUNNING", "RUNNING")
    assert shown(site, job, "%T %Q %r") == "PENDING 0 job requeued in held state"
    check_lives(site, job, "REQUEUED", "PENDING")
    assert Path(intent.kept_path).resolve().name == "step-30"

    assert site.service.command("undo", job, user=BOB).returncode == 1
    assert shown(site, job, "%T %Q") == "PENDING 0"
    by_alice = site.service.command("undo", job, user=ALICE)
    assert by_alice.returncode == 0, by_alice.stderr
    comment = shown(site, job, "%k").split()
    assert comment == [f"mlflow_run={intent.evidence.run_id}", "evalstop=keep"]
    until(site, job, State.UNDONE)
    again = site.service.command("undo", job, user=ALICE)
    assert "undone already" in again.stdout or "nothing to undo" in again.stderr

    site.cluster.run("scancel", waiting)
    start_anew(site, job)
    site.wait(lambda: fallen_again(site, job), "the fall of the next life", 90.0)
    (credit,) = credits_of(site, job)
    watch = site.watch(job)
    assert watch is not None
    assert site.state(job) == "RUNNING"
    assert [each.state for each in site.intents(job)] == [State.UNDONE]
    assert watch.terms.rung is Rung.OBSERVE
    assert intent.ending is not None
    assert intent.ending.ended_s is not None
    assert intent.kept_s is not None
    assert credit.gpu_hours == pytest.approx(4 * (intent.ending.ended_s - intent.kept_s) / 3600)
    assert (credit.user, credit.account) == (ALICE, "ml")
    assert 0 < credit.gpu_hours < 4 * 60 / 3600
    row = next(each for each in site.service.json("status") if each["job"] == job)
    assert (row["state"], row["credit"]) == ("undone", credit.gpu_hours)
    assert [each["gpu_hours"] for each in site.service.json("explain", job)["credits"]] == [credit.gpu_hours]


def test_without_a_store_an_operator_cannot_lift_an_admins_hold(make_site: MakeSite) -> None:
    """The account of the daemon, which may release any job, with settings that cannot be read; then with them."""
    site = make_site()
    job = site.cluster.sbatch(ALICE, "#!/bin/sh\nsleep 300\n", *WHOLE_NODE, "--comment=project=x")
    site.wait(lambda: site.state(job) == "RUNNING" and site.watch(job) is None, "it runs, and is no business of ours")
    site.cluster.run("scontrol", "requeuehold", job)
    site.wait(lambda: shown(site, job, "%T %Q") == "PENDING 0", "the admin's hold")
    command = [sys.executable, "-m", "evalstopd", "undo", job]
    nowhere = {"EVALSTOPD_CONFIG": str(site.service.directory / "none.toml")}
    blind = site.cluster.as_user(OPERATOR, command, env=nowhere)
    seeing = site.service.command("undo", job, user=OPERATOR)

    assert (blind.returncode, seeing.returncode) == (1, 1)
    assert "is another user's, and without the store (" in blind.stderr
    assert "none.toml" in blind.stderr
    assert shown(site, job, "%T %Q %k") == "PENDING 0 project=x"


@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_round_the_requeue_and_away_during_the_undo(make_site: MakeSite, moment: str) -> None:
    """One requeue in all; an undo while the daemon is dead is booked by the next one, which stops nothing again."""
    site = make_site(start=False, enforce=REVERSIBLE)
    wrapper = site.service.directory / "fused_daemon.py"
    shutil.copy(Path(__file__).with_name("fused_daemon.py"), wrapper)
    wrapper.chmod(0o755)
    site.service.start_daemon(wrapper=wrapper, arguments=("requeue_hold", moment))
    job = fall(site)
    site.wait(lambda: site.service.daemon_ended(0.1) == -9, "the daemon is killed", 90.0)
    site.service.start_daemon()
    until(site, job, State.HELD)

    check_lives(site, job, "REQUEUED", "PENDING")
    site.service.kill_daemon()
    assert site.service.command("undo", job, user=ALICE).returncode == 0
    start_anew(site, job)
    site.service.start_daemon()
    until(site, job, State.UNDONE)
    site.wait(lambda: fallen_again(site, job), "the fall of the next life", 90.0)

    check_lives(site, job, "REQUEUED", "RUNNING")
    assert len(credits_of(site, job)) == 1
    assert [each.state for each in site.intents(job)] == [State.UNDONE]


@pytest.mark.parametrize(
    ("action", "state", "becomes"),
    [("requeue-hold", State.ABANDONED, "RUNNING"), ("requeue-hold-or-cancel", State.CONFIRMED, "CANCELLED")],
)
def test_a_job_that_may_not_be_requeued(make_site: MakeSite, action: str, state: State, becomes: str) -> None:
    site = make_site(enforce={"stop_action": action})
    job = fall(site, "--no-requeue")
    until(site, job, state)

    assert site.state(job) == becomes
    check_lives(site, job, becomes)
    assert "Slurm may not requeue it" in " ".join(text for _, text in site.events(job))
    assert [kind for kind, _ in site.events(job)].count("cancelling") == (1 if becomes == "RUNNING" else 2)


def test_the_work_of_a_cancelled_job_goes_on_with_the_printed_command(make_site: MakeSite) -> None:
    """The owner need not write the store: the daemon books when the new job is in the queue."""
    site = make_site()
    job = fall(site)
    until(site, job, State.CONFIRMED)
    done = site.service.command("undo", job, user=ALICE)
    (command,) = re.findall(r"^  (sbatch .*)$", done.stdout, re.MULTILINE)
    script = site.cluster.work(ALICE) / "again.sh"
    script.write_text('#!/bin/sh\nls "$2"\n')

    assert site.service.command("undo", job, user=BOB).returncode == 1
    assert credits_of(site, job) == ()
    held = command.replace("sbatch ", "sbatch --hold ", 1).replace(" SCRIPT ", f" {script} ")
    assert site.cluster.as_user(ALICE, ["bash", "-c", held]).returncode == 0
    until(site, job, State.UNDONE)
    assert next(each.how for each in credits_of(site, job)).endswith("takes up its work")
    assert site.intents(job)[0].kept_path in command
