"""A job with a huge history is judged in slices: the same verdicts in the end, and nobody else waits for them."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random

import pytest

from evalstopd.core.detectors import Verdict, registry
from evalstopd.core.detectors.never import Never
from evalstopd.core.intent import State
from evalstopd.core.model import Eval, JobKey, Mode, Rung
from evalstopd.core.plan import verdicts
from evalstopd.core.watch import Terms
from evalstopd.loop import Loop, Stance, TickReport, folds
from evalstopd.loop.folds import Ask, Folds
from tests.fakes.world import RISE_AND_FALL, RULES, World
from tests.loop.told import events, intents, remarks

RULE = "guaranteed:items=50"
TERMS = Terms(Rung.ENFORCE, RULE, "score", Mode.MAX)


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folds, "LONG", 40)
    monkeypatch.setattr(folds, "SLICE", 200)
    monkeypatch.setattr(folds, "POT", 600)


def key(number: int, uid: int = 1001) -> JobKey:
    return JobKey("c", str(number), uid, 100)


def curve(count: int, seed: int = 1, arrived_s: float = 0.0) -> tuple[Eval, ...]:
    stream = Random(seed)
    means = (0.9 if at < count // 2 else 0.5 for at in range(count))
    return tuple(
        Eval(at, sum(stream.random() < mean for _ in range(50)) / 50, arrived_s=arrived_s)
        for at, mean in enumerate(means)
    )


def passes_of(of: Folds, asks: Sequence[Ask], most: int = 100) -> dict[JobKey, tuple[int, tuple[Verdict, ...]]]:
    """Ask in pass after pass about who was not answered; return in which pass each was, and what."""
    found: dict[JobKey, tuple[int, tuple[Verdict, ...]]] = {}
    for number in range(1, most + 1):
        left = [each for each in asks if each.key not in found]
        if not left:
            break
        found |= {each: (number, answer) for each, answer in of.answers(left).items()}
    return found


@pytest.mark.parametrize("rule", [RULE, "recommended", "k-declines:k=2", "smoothed-declines", "patience"])
@pytest.mark.parametrize("since", [0, 450, 999])
def test_the_verdicts_of_slices_are_those_of_the_whole_curve(rule: str, since: int):
    terms, evals = replace(TERMS, rule=rule), curve(1000)
    found = passes_of(Folds(), [Ask(key(1), terms, evals, since)])

    assert found == {key(1): (5, verdicts(evals, terms, since))}


def test_evals_that_come_meanwhile_are_judged_as_in_one_go():
    """Until a job is judged all its evals are new in each pass: when they came is nothing that a rule sees."""
    of, evals = Folds(), curve(1100)
    for number in range(1, 20):
        by_now = tuple(each._replace(arrived_s=float(number)) for each in evals[: 1000 + number])
        found = of.answers([Ask(key(1), TERMS, by_now, 0)])
        if found:
            break

    assert (number, found) == (6, {key(1): verdicts(by_now, TERMS, 0)})


def test_what_was_folded_once_costs_no_turn_again():
    of, evals = Folds(), curve(1000)
    passes_of(of, [Ask(key(1), TERMS, evals[:990], 0)])

    assert of.answers([Ask(key(1), TERMS, evals[:990], 989)]) == {key(1): verdicts(evals[:990], TERMS, 989)}
    assert of.answers([Ask(key(1), TERMS, evals, 990)]) == {key(1): verdicts(evals, TERMS, 990)}


@pytest.mark.parametrize("changed", [0, 150, 399])
def test_a_curve_that_changed_where_it_was_folded_is_folded_anew(changed: int):
    of, evals = Folds(), curve(1000)
    for _ in range(2):
        assert of.answers([Ask(key(1), TERMS, evals, 0)]) == {}
    other = (*evals[:changed], evals[changed]._replace(score=0.123), *evals[changed + 1 :])
    ask = Ask(key(1), TERMS, other, 0)

    assert passes_of(of, [ask]) == {key(1): (5, verdicts(other, TERMS, 0))}


def test_another_rule_or_earlier_verdicts_are_folded_anew():
    of, evals = Folds(), curve(1000)
    passes_of(of, [Ask(key(1), TERMS, evals, 900)])
    for terms, since in ((replace(TERMS, rule="guaranteed:items=20"), 999), (TERMS, 10)):
        assert passes_of(of, [Ask(key(1), terms, evals, since)]) == {key(1): (5, verdicts(evals, terms, since))}


def test_a_curve_that_changes_in_every_pass_is_done_some_day():
    of, evals = Folds(), curve(1000)
    for number in range(100):
        changed = (evals[0]._replace(score=number / 1000), *evals[1:])
        found = of.answers([Ask(key(1), TERMS, changed, 0)])
        if found:
            break
    assert found == {key(1): verdicts(changed, TERMS, 0)}


def test_who_has_little_left_never_waits_and_owners_take_turns():
    """One owner has twenty long curves, another one: he is not the twenty-first."""
    many = [Ask(key(number, uid=1), TERMS, curve(1000, number), 0) for number in range(20)]
    one = Ask(key(100, uid=2), TERMS, curve(1000, 100), 0)
    short = Ask(key(200, uid=1), TERMS, curve(35, 200), 0)
    found = passes_of(Folds(), [*many, one, short])

    assert found[short.key][0] == 1
    assert found[one.key][0] <= 10
    assert len(found) == 22
    assert max(number for number, _ in found.values()) <= 21 * 5 // 3 + 5


def test_a_pass_folds_so_many_evals_and_no_more():
    of = Folds()
    of.answers([Ask(key(number), TERMS, curve(1000, number), 0) for number in range(50)])

    assert sum(each.place for each in of._folds.values()) == 600


def test_folds_of_jobs_that_are_gone_are_forgotten():
    of = Folds()
    for number in range(500):
        of.answers([Ask(key(number), TERMS, curve(50, number), 0)])
    assert len(of._folds) <= 201


@dataclass
class Passes:
    """A world whose loop is one process's: it keeps its folds."""

    world: World
    folds: Folds = field(default_factory=Folds)

    def tick(self) -> TickReport:
        self.world.clock.time_s += 1.0
        return Loop(self.world.ports(), Stance(self.world.rules, "hash", "test"), folds=self.folds).tick()


def long_history(world: World, job: str, run_id: str, count: int = 1000) -> None:
    for each in curve(count):
        world.evaluate(job, run_id, each.step, each.score)


def test_a_huge_history_delays_no_other_jobs_stop_and_is_judged_itself_in_the_end():
    world = World(replace(RULES, rule=RULE, notice_s=1000.0))
    huge, small = world.train("huge"), world.train("small", comment="evalstop_k=2")
    passes = Passes(world)
    long_history(world, huge, "huge")
    for number, score in enumerate(RISE_AND_FALL, 1):
        world.evaluate(small, "small", number * 10, score)
    first = passes.tick()
    assert first.counts["judged in parts"] == 1
    assert "1 judged in parts" in first.summary
    assert intents(world) == [(small, State.WARNED)]
    for _ in range(5):
        passes.tick()
    assert dict(intents(world)) == {small: State.WARNED, huge: State.WARNED}


def test_in_slices_the_same_is_decided_as_at_once():
    decided = []
    for in_slices in (False, True):
        world = World(replace(RULES, rule=RULE, notice_s=1000.0))
        job = world.train("r1")
        long_history(world, job, "r1")
        passes = Passes(world)
        for _ in range(7):
            passes.tick() if in_slices else world.tick()
        (watch,) = world.store.book(world.cluster.name).watches
        (intent,) = world.store.book(world.cluster.name).intents
        decided.append((intent.evidence, watch.evals, watch.best_step, remarks(world)))
        assert events(world)[0][0] == "planned"
    assert decided[0] == decided[1]


def test_nothing_is_done_to_a_job_on_evals_that_are_not_judged_yet():
    """Its stop is due, and among what came there may be a new best."""
    world = World(replace(RULES, rule="k-declines:k=2", notice_s=3.0))
    job = world.train("r1")
    passes = Passes(world)
    for number, score in enumerate(RISE_AND_FALL[:5], 1):
        world.evaluate(job, "r1", number * 10, score)
        passes.tick()
    for step in range(60, 1060):
        world.evaluate(job, "r1", step, 0.9)
    for _ in range(10):
        passes.tick()
    assert intents(world)[-1] == (job, State.ABANDONED)
    assert world.cluster.cancelled == []


@dataclass(frozen=True, slots=True)
class Breaks(Never):
    """A rule that breaks at one eval."""

    at: int = 0

    def step(self, state: None, point: Eval) -> tuple[None, Verdict]:
        if point.step == self.at:
            raise ZeroDivisionError
        return Never.step(self, state, point)


@pytest.mark.parametrize("rule", ["breaks:at=10", "breaks:at=900", "breaks:no=1"])
def test_a_rule_that_breaks_on_a_long_curve_costs_its_own_job_alone(monkeypatch: pytest.MonkeyPatch, rule: str):
    monkeypatch.setattr(registry, "DETECTORS", {**registry.DETECTORS, "breaks": Breaks})
    world = World(replace(RULES, rule=rule, notice_s=1000.0))
    bad, good = world.train("bad"), world.train("good", comment="evalstop_k=2")
    passes = Passes(world)
    long_history(world, bad, "bad")
    for number, score in enumerate(RISE_AND_FALL, 1):
        world.evaluate(good, "good", number * 10, score)
    for _ in range(7):
        assert passes.tick().good
    assert intents(world) == [(good, State.WARNED)]
    assert (bad, "not-judged") in remarks(world)
