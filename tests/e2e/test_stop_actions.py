"""`[[enforce.actions]]` under the real daemon: of two like jobs one is cancelled, one requeued and held."""

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
        ({"metric": "eval/gentle*"}, (), "evalstop_metric=eval/gentle", "--metric eval/gentle"),
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
