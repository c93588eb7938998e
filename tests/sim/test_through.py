"""The whole loop against the emulated cluster: the same verdicts as the drive per eval, whatever the poll period."""

import json

import pytest
from evalstopd_sim.arms import jobs_of, make_rule
from evalstopd_sim.commands import app
from evalstopd_sim.drive import Scheduler, drive
from evalstopd_sim.journal import Decision
from evalstopd_sim.request import Request, setting
from evalstopd_sim.rule import Rule
from evalstopd_sim.sight import first_view
from evalstopd_sim.simjob import End
from evalstopd_sim.through import detections, through_daemon
from evalstopd_sim.truth import TrueJob
from typer.testing import CliRunner

from evalstopd.core.intent import State
from evalstopd.core.policies import policy
from evalstopd.store.memory import MemoryStore
from tests.sim.worlds import job

RULE = make_rule("k-declines:k=2")


def world_of(jobs: int, **options: object) -> tuple[tuple[TrueJob, ...], Request]:
    asked = Request(jobs=jobs, **options)
    return tuple(jobs_of(setting(asked), 3)), asked


def per_eval_stops(jobs: tuple[TrueJob, ...], asked: Request, rule: Rule = RULE) -> set[str]:
    journal: list[Decision] = []
    drive(jobs, Scheduler(policy(asked.base), rule, journal), setting(asked).cluster)
    return {decision.job_id for decision in journal if decision.verb == "stop"}


def intents(store: MemoryStore) -> list[tuple[str, int, float, State]]:
    keys = [watch.key for watch in store.recent(10_000)]
    return sorted((i.key.job_id, i.evidence.trigger_step, i.created_s, i.state) for i in store.intents_of(keys))


@pytest.mark.parametrize("poll_s", [1.0, 600.0])
@pytest.mark.parametrize("rule", ["k-declines:k=2", "drop-test-paper"])
def test_verdicts_come_at_the_evals_of_the_drive_per_eval_whatever_the_poll_period(poll_s: float, rule: str) -> None:
    """A job that only one drive stopped had ended before the daemon could see the eval."""
    jobs, asked = world_of(25)
    made = make_rule(rule)
    world, store = through_daemon(jobs, policy(asked.base), made, setting(asked).cluster, poll_s)

    stopped = {r.job.truth.job_id: r for r in world.records.values() if r.job.end is End.STOPPED}
    expected = per_eval_stops(jobs, asked, made)
    assert expected
    assert set(stopped) <= expected
    for name in expected:
        truth = next(each for each in jobs if each.job_id == name)
        trigger = made.trigger(truth, first_view(truth))
        record = next(r for r in world.records.values() if r.job.truth.job_id == name)
        if name in stopped:
            assert record.job.trigger.eval_place == trigger.eval_place
        else:
            points = [p for watch in store.find(record.job_id) for p in store.points([watch.key])[watch.key]]
            in_time = [point.step for point in points if point.arrived_s < record.ended_s]
            assert max(in_time, default=0) <= trigger.eval_place
    found = detections(world, store, made)
    assert found.both == len(stopped)
    assert found.both + found.ended == len(expected)
    assert (found.let_go, found.elsewhere) == (0, 0)


def test_passes_left_out_would_have_changed_nothing() -> None:
    """A daemon that really makes every pass decides the same at the same moments."""
    jobs, asked = world_of(8)
    cluster = setting(asked).cluster
    sparse, kept = through_daemon(jobs, policy("srtf-est"), RULE, cluster, 30.0)
    dense, all_kept = through_daemon(jobs, policy("srtf-est"), RULE, cluster, 30.0, every_pass=True)

    assert intents(kept) == intents(all_kept) != []
    assert list(sparse.tally.jct_s) == list(dense.tally.jct_s)


def test_slower_polling_stops_later_and_fewer() -> None:
    jobs, asked = world_of(120)
    runs = [through_daemon(jobs, policy("srtf-est"), RULE, setting(asked).cluster, s) for s in (60.0, 7200.0)]
    quick, slow = (detections(*run, RULE) for run in runs)

    assert quick.both > slow.both > 0
    assert quick.both + quick.ended + quick.let_go == slow.both + slow.ended + slow.let_go
    assert quick.delay_s / quick.both < slow.delay_s / slow.both


def test_a_verdict_that_a_later_eval_takes_back_before_any_poll_stops_nothing_and_is_counted() -> None:
    scores = (0.5, 0.4, 0.3, 0.9, 0.95)
    jobs = [job("a", duration_s=1000.0, marks=(100.0, 200.0, 300.0, 390.0, 900.0), scores=scores, levels=scores)]
    cluster = setting(Request(gpus=8)).cluster

    found = [detections(*through_daemon(jobs, policy("fifo"), RULE, cluster, s), RULE) for s in (1.0, 400.0)]

    assert [(each.both, each.ended, each.let_go) for each in found] == [(1, 0, 0), (0, 0, 1)]


def test_a_few_hundred_jobs_soak_through_preemptions_and_leave_nothing_open() -> None:
    jobs, asked = world_of(300)
    world, store = through_daemon(jobs, policy("srtf-est"), RULE, setting(asked).cluster, 300.0)

    states = [state for *_, state in intents(store)]
    assert world.tally.over == 300
    assert world.tally.preemptions > 0
    assert states.count(State.CONFIRMED) == sum(world.tally.stopped) > 50
    assert set(states) <= {State.CONFIRMED, State.ABANDONED}
    assert store.book("emulated").watches == ()


def test_a_horizon_ends_the_daemon_too() -> None:
    jobs, asked = world_of(60, until_h=10.0)
    world, _ = through_daemon(jobs, policy("srtf-est"), RULE, setting(asked).cluster, 60.0)

    assert world.now_s() <= 10 * 3600 + 60
    assert len(world.live) > 0


def call(*arguments: str) -> list[dict]:
    command = ["simulate", "--seeds", "2", "--jobs", "40", "--through-daemon", "--json", *arguments]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)["rows"]


def test_the_command_shows_what_the_poll_period_costs_and_the_same_bytes_each_time() -> None:
    polls = ("--poll-s", "60", "--poll-s", "3600")
    rows = call(*polls)

    assert rows == call(*polls, "--processes", "2")
    assert [row.get("through_daemon", {}).get("poll_s") for row in rows] == [None, None, 60.0, 3600.0]
    for row in rows[2:]:
        told = row["through_daemon"]
        assert told["elsewhere"] == 0
        assert told["both"] == row["stopped"] * row["seeds"]
        assert told["both"] + told["ended"] + told["let_go"] == rows[1]["stopped"] * 2


def test_the_default_period_is_a_minute_and_the_table_names_both_counts() -> None:
    shown = CliRunner().invoke(app, ["simulate", "--seeds", "1", "--jobs", "30", "--through-daemon"]).stdout

    assert "stopped by both  ended before seen" in shown
    assert "\n60 s " in shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--poll-s", "0"], "--poll-s must be between"),
        (["--poll-s", "nan"], "--poll-s must be between"),
        (["--detector", "peak-oracle"], "the daemon has no rule peak-oracle"),
        (["--detector", "put-last+k-declines"], "the daemon has no rule put-last"),
        (["--detector", "loss-plateau"], "needs more than the evals"),
        (["--detector", "elapsed-fraction"], "needs more than the evals"),
        (["--base", "slaq"], "policy slaq is elastic"),
    ],
)
def test_what_no_daemon_could_do_is_refused_in_one_line(arguments: list[str], words: str) -> None:
    result = CliRunner().invoke(app, ["simulate", "--seeds", "1", "--jobs", "30", "--through-daemon", *arguments])

    assert result.exit_code == 2
    assert words in result.stderr
