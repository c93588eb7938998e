"""How a job is stopped, under the real daemon: cancelled, requeued and held, or by the signal its owner asked for."""

from collections.abc import Callable, Iterator, Mapping

import pytest
from demo.rig import users
from demo.rig.cluster import Cluster

from evalstopd.core.intent import State
from tests.e2e.site import Site

pytestmark = [pytest.mark.slurm, pytest.mark.mlflow]
ALICE = users.ALICE
HALF_A_NODE = ("--gpus=2", "--nodes=1")
# Long enough for a stop by the default rule, too.
FALL = "0.1,0.4,0.8,0.7,0.6,0.5,0.4,0.3,0.2,0.1"
GENTLE = "gentle"


@pytest.fixture(scope="module", autouse=True)
def gentle_partition(cluster: Cluster) -> Iterator[None]:
    """A second partition over the same nodes; it goes once no job is left in it."""
    cluster.run("scontrol", "create", f"PartitionName={GENTLE}", "Nodes=ALL", "State=UP")
    yield
    cluster.run("scontrol", "delete", f"PartitionName={GENTLE}")


def both_stopped(site: Site, *jobs: str) -> bool:
    states = {job: [intent.state for intent in site.intents(job)] for job in jobs}
    return all(found and found[0] in (State.CONFIRMED, State.HELD) for found in states.values())


@pytest.mark.parametrize(
    ("fits", "options", "words", "more"),
    [
        ({"partition": "gent*"}, (f"--partition={GENTLE}",), "", ""),
        ({"metric": "eval/gentle*"}, (), "evalstop_metric=eval/gentle evalstop_mode=max", "--metric eval/gentle"),
        ({"rule": "k-declines"}, (), "evalstop_k=2", ""),
    ],
    ids=["partition", "metric", "rule"],
)
def test_what_fits_an_entry_is_held_and_the_rest_cancelled(
    make_site: Callable[..., Site], fits: Mapping[str, str], options: tuple[str, ...], words: str, more: str
) -> None:
    """One daemon, two jobs that fall alike; both are stopped once, each in its own way."""
    # The first entry that fits counts: the second is there to be too late.
    entries = ({"stop_action": "requeue-hold", **fits}, {"stop_action": "cancel", **fits})
    site = make_site(rules={"rule": "recommended"}, enforce={"actions": entries})
    usual = site.train(ALICE, FALL, *HALF_A_NODE)
    gentle = site.train(ALICE, FALL, *HALF_A_NODE, *options, words=words, more=more)
    site.wait(lambda: both_stopped(site, usual, gentle), "both stops")

    assert [each.state for each in site.intents(usual)] == [State.CONFIRMED]
    assert [each.state for each in site.intents(gentle)] == [State.HELD]
    assert site.accounted(usual) == "CANCELLED"
    assert site.cluster.squeue("-j", gentle, "-o", "%T %Q %r").strip() == "PENDING 0 job requeued in held state"
    assert [kind for job in (usual, gentle) for kind, _ in site.events(job)].count("cancelling") == 2
    assert site.service.command("undo", gentle, user=ALICE).returncode == 0
    site.wait(lambda: site.intents(gentle)[0].state is State.UNDONE, "the held one is taken back")


@pytest.mark.parametrize(
    ("body", "end"),
    [("trap 'kill $!; exit 0' USR1\n{trainer} &\nwait\n", "COMPLETED"), ("exec {trainer}\n", "FAILED")],
    ids=["trap", "no trap"],
)
def test_an_end_on_the_owners_signal_is_a_stop(make_site: Callable[..., Site], body: str, end: str) -> None:
    """A script that catches it and ends well, and one that is killed by it: confirmed, told of, undone, no evidence."""
    site = make_site()
    trainer = site.command(FALL, words="evalstop_signal=USR1@100")
    job = site.cluster.sbatch(ALICE, "#!/bin/bash\n" + body.format(trainer=trainer), *HALF_A_NODE)
    site.wait(lambda: "telling" in site.kinds(job), "the end of the stop")
    (intent,) = site.intents(job)
    kinds = [kind for kind, _ in site.events(job)]

    assert (intent.state, site.accounted(job)) == (State.CONFIRMED, end)
    assert "cancelling" not in kinds
    assert kinds.index("signalled") < kinds.index("confirmed") < kinds.index("telling")
    assert f"the job ended as {end} after USR1, as its owner asked" in dict(site.events(job))["confirmed"]
    run = site.run(intent.evidence.run_id)
    assert (run["status"], run["tags"]["evalstop.state"]) == ("KILLED", "confirmed")
    assert [row["fate"] for row in site.service.json("scorecard")["stops"]] == ["stopped"]
    undone = site.service.command("undo", job, user=ALICE)
    assert undone.returncode == 0, undone.stderr
    assert f"evalstop_undo={job}" in undone.stdout


def test_without_the_right_a_stop_waits_and_it_is_said_what_is_missing(
    cluster: Cluster, make_site: Callable[..., Site]
) -> None:
    cluster.run("sacctmgr", "-i", "modify", "user", users.DAEMON, "set", "adminlevel=None")
    try:
        site = make_site()
        job = site.train(ALICE, FALL, *HALF_A_NODE, more="--linger-s 300")
        site.wait(lambda: "cancel-refused" in dict(site.events(job)), "Slurm refuses")
        checked = {row["what"]: row for row in site.service.json("check")}
        (intent,) = site.intents(job)
        remarks = site.service.book.remarks_of(["site"])
    finally:
        cluster.run("sacctmgr", "-i", "modify", "user", users.DAEMON, "set", "adminlevel=Operator")

    assert site.state(job) == "RUNNING"
    assert (intent.state, intent.cancel_tries, intent.refused, intent.acted_s) == (State.PROMOTED, 0, 1, None)
    assert "Access/permission denied" in dict(site.events(job))["cancel-refused"]
    assert len([each for each in remarks if each.code.startswith("no-right") and "Operator level" in each.text]) == 1
    assert not checked["slurm rights"]["good"]
    assert "Operator" in checked["slurm rights"]["text"]
