"""A stranger's points and direction tags in my run (open server): they cost me a warning at most."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from demo.rig import users

from evalstopd.core.intent import State
from evalstopd.core.model import Mode, Rung
from evalstopd.core.rules import ServerClass
from evalstopd.store.memory import MemoryStore
from tests.adapters.mlflow.tracker import Tracker
from tests.e2e.site import FALL, METRIC, RISE, Site
from tests.fakes.world import HEALTHY, RISE_AND_FALL, RULES, World
from tests.loop.told import intents

TURNED = {
    "evalstop_mode": "min", "evalstop.mode": "min", "evalstop": "enforce", "evalstop_metric": "loss",
    "evalstop.metric": "loss", "evalstop_k": "1", "evalstop.rung": "enforce",
}  # fmt: skip


def test_an_open_server_without_the_owners_log_stops_only_where_the_owner_says_enforce() -> None:
    world = World(replace(RULES, server=ServerClass.OPEN))
    silent, asking = world.train("r1"), world.train("r2", comment="evalstop=enforce")
    for number, score in enumerate(RISE_AND_FALL, 1):
        world.evaluate(silent, "r1", number, score)
        world.evaluate(asking, "r2", number, score)
        world.tick()

    assert world.cluster.cancelled == [(asking, 0)]
    assert sorted(intents(world)) == [(silent, State.WARNED), (asking, State.CONFIRMED)]


def test_a_strangers_tag_does_not_choose_the_folder_on_an_open_server() -> None:
    world = World(replace(RULES, server=ServerClass.OPEN))
    job = world.train("r1", comment="evalstop=enforce")
    world.cluster.set_comment(job, "mlflow_run=r1 evalstop=enforce")
    world.tracker.runs["r1"].tags["evalstop.output_dir"] = "older"
    world.keeper.save("/home/alice/older", 30)
    world.play(job, "r1", RISE_AND_FALL)
    store = world.store
    assert isinstance(store, MemoryStore)

    assert store.recent(1)[0].output_dir == "1/r1/checkpoints", "where Lightning saves"


def test_no_tag_of_a_run_turns_the_direction_or_tightens_the_rule() -> None:
    """Only the comment, which munge proves to be the owner's, says what is better; whatever the server."""
    for server in ServerClass:
        world = World(replace(RULES, server=server))
        job = world.train("r1")
        world.tracker.runs["r1"].tags |= TURNED
        world.play(job, "r1", HEALTHY)
        assert isinstance(world.store, MemoryStore)

        assert world.cluster.cancelled == []
        assert intents(world) == []
        assert world.store.recent(1)[0].mode_now is Mode.MAX


@pytest.mark.slurm
@pytest.mark.mlflow
def test_a_stranger_who_logs_a_fall_into_my_run_on_an_open_server_stops_nothing(make_site: Callable[..., Site]) -> None:
    """ "A stranger's points and direction tags in my run (open server)": my job is warned of, and goes on."""
    site = make_site(mlflow={"server": "open"}, trust={"open_mlflow": ""})
    tracker = Tracker(site.mlflow.uri)
    job = site.train(users.ALICE, RISE, pace_s=0.3, more="--folder-by comment")
    site.wait(lambda: site.evals(job) == 8, "all evals read")
    watch = site.watch(job)
    assert watch is not None
    tracker.log(str(watch.run_id), METRIC, [(90 + n, 0.5 - n / 20, 10**13 + n) for n in range(10)])
    for key, value in TURNED.items():
        tracker.call("/runs/set-tag", {"run_id": watch.run_id, "key": key, "value": value})
    site.wait(lambda: site.intents(job) and site.intents(job)[0].state is State.WARNED, "the warning")
    tracker.http.close()

    assert site.intents(job)[0].rung is Rung.WARN
    assert site.state(job) == "RUNNING"
    doubts = [text for whose, code, text in site.remarks() if (whose, code) == (job, "not-corroborated")]
    assert [text.partition("trainer_state.json ")[2] for text in doubts] == ["does not reach the eval"]
    after = site.watch(job)
    assert after is not None
    assert (after.mode_now, after.metric_now) == (Mode.MAX, METRIC)


@pytest.mark.slurm
@pytest.mark.mlflow
def test_a_stranger_who_buries_a_rise_under_a_fall_stops_nothing(make_site: Callable[..., Site]) -> None:
    """The stranger writes below the very steps that my trainer has logged: my own file has other scores."""
    site = make_site(mlflow={"server": "open"}, trust={"open_mlflow": ""})
    tracker = Tracker(site.mlflow.uri)
    job = site.train(users.ALICE, RISE, pace_s=0.3, more="--folder-by comment")
    site.wait(lambda: site.evals(job) == 8, "all evals read")
    watch = site.watch(job)
    assert watch is not None
    fall = [float(each) for each in FALL.split(",")]
    tracker.log(str(watch.run_id), METRIC, [(10 * n, score, 10**13) for n, score in enumerate(fall, 1)])
    site.wait(lambda: site.intents(job) and site.intents(job)[0].state is State.WARNED, "the warning")
    tracker.http.close()

    assert (site.intents(job)[0].rung, site.state(job)) == (Rung.WARN, "RUNNING")
    doubts = [text for whose, code, text in site.remarks() if (whose, code) == (job, "not-corroborated")]
    assert [text.partition("trainer_state.json ")[2] for text in doubts] == ["does not have the score of step 20"]


@pytest.mark.slurm
@pytest.mark.mlflow
def test_the_owners_own_files_lift_the_ceiling_of_an_open_server(make_site: Callable[..., Site]) -> None:
    """Nobody asked for enforce in writing, but what my trainer wrote to my own files says the same as MLflow."""
    site = make_site(mlflow={"server": "open"}, trust={"open_mlflow": ""})
    job = site.train(users.ALICE, FALL, more="--folder-by comment")
    site.wait(lambda: site.intents(job) and site.intents(job)[0].state is State.CONFIRMED, "the stop")

    intent = site.intents(job)[0]
    assert (intent.rung, site.state(job)) == (Rung.ENFORCE, "CANCELLED")
    assert re.fullmatch(
        r"steps 30 to \d+ and the verdict as in the owner's checkpoint-\d+/trainer_state.json, SHA-256 [0-9a-f]{64}",
        intent.evidence.corroborated,
    )


@pytest.mark.slurm
@pytest.mark.mlflow
def test_a_stranger_ends_no_job_whose_owner_wrote_enforce_where_the_owners_file_shows_a_rise(
    make_site: Callable[..., Site],
) -> None:
    """The owner's word lets the daemon stop on what anybody may log; my trainer's files go before it."""
    site = make_site(mlflow={"server": "open"}, trust={"open_mlflow": ""})
    tracker = Tracker(site.mlflow.uri)
    job = site.train(users.ALICE, RISE, words="evalstop=enforce", pace_s=0.3, more="--folder-by comment")
    site.wait(lambda: site.evals(job) == 8, "all evals read")
    watch = site.watch(job)
    assert watch is not None
    fall = [float(each) for each in FALL.split(",")]
    tracker.log(str(watch.run_id), METRIC, [(10 * n, score, 10**13) for n, score in enumerate(fall, 1)])
    site.wait(lambda: site.intents(job) and site.intents(job)[0].state is State.WARNED, "the warning")
    tracker.http.close()
    before = site.service.log.stat().st_size
    site.wait(lambda: site.service.log.read_text()[before:].count(" watched") >= 5, "passes after it")

    assert [(each.rung, each.state) for each in site.intents(job)] == [(Rung.WARN, State.WARNED)]
    assert site.state(job) == "RUNNING"
    said = [text for whose, code, text in site.remarks() if (whose, code) == (job, "contradicted")]
    assert [text.partition("trainer_state.json ")[2].partition(";")[0] for text in said] == [
        "has 0.2 at step 20, not 0.4"
    ]
    for command in ("status", "explain", "report"):
        shown = site.service.command(command, *([job] if command == "explain" else [])).stdout
        assert "trainer_state.json has 0.2 at step 20, not 0.4" in " ".join(shown.split())
    assert site.service.command("audit", "replay").returncode == 0


@pytest.mark.slurm
@pytest.mark.mlflow
def test_the_owners_file_that_shows_the_same_fall_leaves_the_owners_word_as_it_is(
    make_site: Callable[..., Site],
) -> None:
    """Nothing but the trainer's scores is another: the case above does not rest on anything else."""
    site = make_site(mlflow={"server": "open"}, trust={"open_mlflow": ""})
    job = site.train(users.ALICE, FALL, words="evalstop=enforce", more="--folder-by comment")
    site.wait(lambda: site.intents(job) and site.intents(job)[0].state is State.CONFIRMED, "the stop")

    intent = site.intents(job)[0]
    assert (intent.rung, site.state(job)) == (Rung.ENFORCE, "CANCELLED")
    assert (intent.evidence.corroborated, intent.evidence.contradicted) == ("", "")
