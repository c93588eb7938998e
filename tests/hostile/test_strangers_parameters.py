"""A stranger's parameters in my run (open server): one that was not there yet names no folder, direction or metric."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from demo.rig import users

from evalstopd.core.caps import UNLIMITED
from evalstopd.core.corroborate import OwnerLog
from evalstopd.core.intent import UNNAMED, State
from evalstopd.core.model import Mode, Phase, Rung
from evalstopd.core.policies import policy
from evalstopd.core.preempt import PreemptRules
from evalstopd.core.rules import Rules, ServerClass
from evalstopd.loop import Loop, Stance
from tests.adapters.mlflow.tracker import Tracker
from tests.e2e.site import FALL, METRIC, RISE, Site
from tests.fakes.world import HEALTHY, RISE_AND_FALL, RULES, World
from tests.loop.told import events, intents, remarks, said

OPEN = replace(RULES, server=ServerClass.OPEN, caps=UNLIMITED)
ACCEPTED = replace(OPEN, open_server_accepted="a reason")
CHECKED = replace(OPEN, server=ServerClass.AUTHENTICATED)
CHOOSING = replace(OPEN, metric="", mode=None, metrics=("eval/score*", "eval/*"), modes=(("eval/*", Mode.MAX),))
WRITE = "name the output folder in the job's comment, evalstop_output=DIR"
WARNED = "only warned of, although its owner asked for enforce:"


def submit(world: World, run_id: str, words: str = "", **fields: object) -> str:
    """Submit a job of alice's whose run logs no parameter, and whose comment names no folder of its own accord."""
    job_id = world.cluster.submit(1001, 8, f"mlflow_run={run_id} {words}".strip(), **fields)
    world.tracker.add_run(run_id, **{"slurm.job_id": str(world.cluster.jobs[job_id].raw_id)}).params.clear()
    return job_id


def set_parameters(world: World, run_id: str, **params: str) -> None:
    """Set parameters as a stranger can: only such as are not there yet."""
    world.tracker.runs[run_id].params = {**params, **world.tracker.runs[run_id].params}


def log(scores: Sequence[float], metric: str = "score") -> OwnerLog:
    return OwnerLog("trainer_state.json", "a" * 64, {metric: tuple((10 * n, s) for n, s in enumerate(scores, 1))})


def play(world: World, folder: str, logged: dict[str, Sequence[float]], metric: str = "score") -> None:
    """Log curves into runs side by side and save the checkpoints to one folder, with a pass after each step."""
    for number in range(1, 1 + max(map(len, logged.values()))):
        at_ms = int(world.clock.time_s * 1000)
        for run_id, scores in logged.items():
            world.tracker.log(run_id, 10 * number, scores[number - 1], metric, at_ms)
        world.keeper.save(folder, 10 * number, at_s=world.clock.time_s)
        world.tick()


def beside(rules: Rules, words: str = "evalstop_output=out-ra") -> tuple[World, str, str]:
    """Return a world in which alice's job really falls, and a stranger has made hers beside it look alike."""
    world = World(rules)
    falling, healthy = submit(world, "ra", words), submit(world, "rb")
    set_parameters(world, "ra", output_dir="out-ra")
    set_parameters(world, "rb", output_dir="out-ra")
    world.keeper.logs["/home/alice/out-ra"] = log(RISE_AND_FALL)
    play(world, "/home/alice/out-ra", {"ra": RISE_AND_FALL, "rb": RISE_AND_FALL})
    return world, falling, healthy


def test_a_parameter_does_not_lead_to_another_jobs_files_that_would_bear_out_the_stop() -> None:
    world, falling, healthy = beside(OPEN)

    assert world.cluster.cancelled == [(falling, 0)]
    assert (healthy, State.WARNED) in intents(world)
    assert [each for each in world.keeper.pins if each[0].startswith(f"c-{healthy}-")] == []
    assert [(job, code) for job, code in remarks(world) if code == "output-parameter"] == [
        (healthy, "output-parameter")
    ]
    (text,) = said(world, "output-parameter")
    assert text.endswith(WRITE)
    assert "out-ra" not in text, "what a stranger wrote is no advice"


def test_nor_does_it_where_the_owners_own_trainer_set_it_until_the_comment_says_the_same() -> None:
    world, falling, _ = beside(OPEN, words="")

    assert world.cluster.cancelled == []
    assert (falling, "output-parameter") in remarks(world)


@pytest.mark.parametrize("rules", [ACCEPTED, CHECKED])
def test_where_the_site_trusts_what_runs_say_a_parameter_counts_as_before(rules: Rules) -> None:
    world, falling, healthy = beside(rules, words="")

    assert world.cluster.cancelled == [(falling, 0), (healthy, 0)]
    assert said(world, "output-parameter") == []


@pytest.mark.parametrize("later", [ACCEPTED, CHECKED])
def test_a_job_that_was_first_seen_while_nobody_was_trusted_is_not_led_by_a_parameter_later(later: Rules) -> None:
    world = World(OPEN)
    job = submit(world, "rb")
    set_parameters(world, "rb", output_dir="out-ra")
    world.tracker.runs["rb"].tags["evalstop.output_dir"] = "out-ra"
    world.keeper.logs["/home/alice/out-ra"] = log(RISE_AND_FALL)
    world.tick()
    world.rules = later
    play(world, "/home/alice/out-ra", {"rb": RISE_AND_FALL})

    assert world.cluster.cancelled == []
    assert intents(world) == [(job, State.WARNED)]
    assert (job, "output-parameter") in remarks(world)


def test_on_the_observe_rung_nobody_is_told_of_a_folder_that_nothing_would_be_done_in() -> None:
    world, _, _ = beside(replace(OPEN, rung=Rung.OBSERVE), words="")

    assert remarks(world) == []


@pytest.mark.parametrize(("greater", "scores"), [("False", HEALTHY), ("True", RISE_AND_FALL), ("False", RISE_AND_FALL)])
def test_a_parameter_says_no_direction(greater: str, scores: tuple[float, ...]) -> None:
    """Whatever it says, and even where it would be right: nobody who counts has said which way is better."""
    world = World(replace(OPEN, metric="eval/score", mode=None))
    job = submit(world, "r1", "evalstop=enforce evalstop_output=out-r1")
    set_parameters(world, "r1", metric_for_best_model="eval/score", greater_is_better=greater)
    play(world, "/home/alice/out-r1", {"r1": scores}, "eval/score")

    assert (world.cluster.cancelled, world.keeper.pins, intents(world)) == ([], set(), [])
    assert remarks(world) == [(job, "direction")]


def test_nor_where_the_metric_is_chosen_from_what_the_run_has() -> None:
    world = World(replace(CHOOSING, modes=()))
    job = submit(world, "r1", "evalstop=enforce evalstop_output=out-r1")
    set_parameters(world, "r1", metric_for_best_model="eval/score", greater_is_better="False")
    play(world, "/home/alice/out-r1", {"r1": HEALTHY}, "eval/score")

    assert (world.cluster.cancelled, world.keeper.pins) == ([], set())
    assert remarks(world) == [(job, "direction")]


def test_a_parameter_that_speaks_against_the_sites_direction_still_keeps_the_daemon_from_acting() -> None:
    """It may be the trainer's own: on doubt nothing is done."""
    world = World(replace(OPEN, metric="eval/score"))
    job = submit(world, "r1", "evalstop=enforce evalstop_output=out-r1")
    set_parameters(world, "r1", metric_for_best_model="eval/score", greater_is_better="False")
    play(world, "/home/alice/out-r1", {"r1": RISE_AND_FALL}, "eval/score")

    assert world.cluster.cancelled == []
    assert remarks(world) == [(job, "direction")]


@pytest.mark.parametrize(("rules", "yields"), [(OPEN, False), (ACCEPTED, True)])
def test_a_parameter_gives_no_job_a_fresh_checkpoint_by_which_it_would_yield(rules: Rules, yields: bool) -> None:
    world = World(replace(rules, rung=Rung.WARN), gpus=16)
    long = {"time_limit_s": 360_000}
    submit(world, "ra", "evalstop=keep evalstop_output=out-ra", **long)
    bare = submit(world, "rb", **long)
    set_parameters(world, "rb", output_dir="out-ra")
    play(world, "/home/alice/out-ra", {"ra": HEALTHY, "rb": HEALTHY})
    world.cluster.submit(1002, 8, reason="Resources", time_limit_s=600)
    asked = PreemptRules(policy("srtf-est"), min_run_s=5.0, fresh_s=30.0)
    Loop(world.ports(), Stance(world.rules, "hash", "test", None, asked)).tick()

    assert world.cluster.put_backs == ([(bare, 0)] if yields else [])
    assert world.cluster.jobs[bare].phase is (Phase.PENDING if yields else Phase.RUNNING)


@pytest.mark.parametrize("late", [False, True])
def test_a_parameter_does_not_blind_the_owners_log_that_contradicts_a_forged_fall(late: bool) -> None:
    """The log lies where Lightning saves, below the job's own working directory; the stranger names another folder."""
    world = World(replace(OPEN, notice_s=100.0 if late else 0.0))
    job = submit(world, "r1", "evalstop=enforce")
    own = "/home/alice/1/r1/checkpoints"
    set_parameters(world, "r1", output_dir="out-ra")
    world.keeper.logs[own] = log(HEALTHY[: 3 if late else 5])
    for step in range(10, 60, 10):
        world.keeper.save("/home/alice/out-ra", step, keep_last=9, at_s=world.clock.time_s)
    play(world, own, {"r1": (*HEALTHY[:3], 0.2, 0.1)})
    world.keeper.logs[own] = log(HEALTHY[:5])
    world.tick(100.0)

    assert world.cluster.cancelled == []
    against = "the owner's trainer_state.json has 0.4 at step 40, not 0.2"
    assert ("abandoned" if late else "planned") in {kind for kind, text in events(world) if against in text}
    assert (job, State.ABANDONED if late else State.WARNED) in intents(world)


def forge(world: World, *scores: float) -> None:
    """Log points of a metric that the training does not log, one a pass, while it saves its checkpoints."""
    play(world, "/home/alice/out-r1", {"r1": scores}, "eval/score")


def test_a_metric_that_a_stranger_brings_in_stops_nothing_where_the_owners_log_has_another() -> None:
    world = World(CHOOSING)
    job = world.train("r1", comment="evalstop=enforce")
    world.keeper.logs["/home/alice/out-r1"] = log(HEALTHY, "eval/accuracy")
    world.tracker.log("r1", 1, 0.05, "eval/score")
    world.tick()
    forge(world, *RISE_AND_FALL)

    assert world.cluster.cancelled == []
    assert intents(world) == [(job, State.WARNED)]
    assert said(world, "contradicted") == [
        f"{WARNED} {UNNAMED}, and the owner's trainer_state.json has nothing of it; SHA-256 {'a' * 64}"
    ]


def test_nor_does_one_that_the_site_names_and_the_owners_log_does_not_have() -> None:
    world = World(replace(OPEN, metric="eval/score"))
    job = world.train("r1", comment="evalstop=enforce")
    world.keeper.logs["/home/alice/out-r1"] = log(HEALTHY, "eval/accuracy")
    forge(world, *RISE_AND_FALL)

    assert (world.cluster.cancelled, intents(world)) == ([], [(job, State.WARNED)])


def test_without_a_log_a_metric_that_the_run_chose_is_only_warned_of_until_the_comment_names_it() -> None:
    world = World(CHOOSING)
    job = world.train("r1", comment="evalstop=enforce")
    forge(world, *RISE_AND_FALL[:5])
    assert intents(world) == [(job, State.WARNED)]
    assert said(world, "contradicted") == [f"{WARNED} {UNNAMED}, and no log of the owner's has it: no training log"]
    words = "mlflow_run=r1 evalstop=enforce evalstop_output=out-r1 evalstop_metric=eval/score"
    world.cluster.set_comment(job, words)
    world.tick()
    assert ("abandoned", "the owner has named the metric by now: its next eval decides anew") in events(world)
    for step, score in ((60, 0.5), (70, 0.4)):
        world.tracker.log("r1", step, score, "eval/score", int(world.clock.time_s * 1000))
        world.tick()

    assert world.cluster.cancelled == [(job, 0)]


@pytest.mark.parametrize("words", ["evalstop=enforce evalstop_metric=eval/score", "evalstop=enforce"])
def test_a_metric_that_the_comment_names_or_the_owners_log_has_is_stopped_by(words: str) -> None:
    world = World(CHOOSING)
    job = world.train("r1", comment=words)
    if "metric" not in words:
        world.keeper.logs["/home/alice/out-r1"] = log(RISE_AND_FALL, "eval/score")
    forge(world, *RISE_AND_FALL)

    assert world.cluster.cancelled == [(job, 0)]


def test_a_log_that_is_found_during_the_notice_and_lacks_the_metric_is_heard_before_the_act() -> None:
    world = World(replace(OPEN, metric="eval/score", notice_s=100.0))
    job = world.train("r1", comment="evalstop=enforce")
    forge(world, *RISE_AND_FALL[:5])
    world.keeper.logs["/home/alice/out-r1"] = log(HEALTHY, "eval/accuracy")
    world.tick(100.0)

    assert world.cluster.cancelled == []
    assert intents(world) == [(job, State.ABANDONED)]


@pytest.mark.slurm
@pytest.mark.mlflow
def test_a_stranger_who_names_the_folder_of_my_falling_job_does_not_end_my_rising_one(
    make_site: Callable[..., Site],
) -> None:
    """Both are mine, side by side; only what I wrote into a job's comment, which Slurm proves, leads to files."""
    site = make_site(mlflow={"server": "open"}, trust={"open_mlflow": ""})
    tracker = Tracker(site.mlflow.uri)
    falling = site.train(users.ALICE, FALL, more="--folder-by comment")
    rising = site.train(users.ALICE, RISE, pace_s=0.3, more="--folder-by nothing")
    site.wait(lambda: site.watch(rising) and site.watch(falling), "both are watched")
    watch = site.watch(rising)
    assert watch is not None
    run = str(watch.run_id)
    tracker.call("/runs/log-parameter", {"run_id": run, "key": "output_dir", "value": f"out-{falling}"})
    fall = [float(each) for each in FALL.split(",")]
    tracker.log(run, METRIC, [(10 * n, score, 10**13) for n, score in enumerate(fall, 1)])
    site.wait(
        lambda: site.intents(falling) and site.intents(falling)[0].state is State.CONFIRMED, "my falling job's stop"
    )
    site.wait(lambda: site.intents(rising) and site.intents(rising)[0].state is State.WARNED, "the warning")
    tracker.http.close()

    assert (site.intents(rising)[0].rung, site.state(rising)) == (Rung.WARN, "RUNNING")
    assert site.accounted(falling) == "CANCELLED"
    told = [text for whose, code, text in site.remarks() if (whose, code) == (rising, "output-parameter")]
    assert [text.endswith(WRITE) for text in told] == [True]
