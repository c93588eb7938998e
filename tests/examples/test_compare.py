"""The comparison with a real cluster reckons as the simulator does, and says what it cannot know."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from demo.compare import figures, picture
from demo.compare.__main__ import parse
from demo.compare.figures import Repeat
from demo.compare.plan import Plan, Ran, measured, predicted
from evalstopd_sim.arms import make_rule
from evalstopd_sim.sight import first_view
from evalstopd_sim.truth import TrueJob

# So many nodes that nobody waits.
PLAN = Plan(jobs=40, nodes=100, hour_s=3.0)


def as_simulated(plan: Plan, place: int, job: TrueJob) -> Ran:
    """Return a real job that went as the simulator says: no waiting, stopped at the eval at which the rule fires."""
    trigger = make_rule(plan.rule).trigger(job, first_view(job))
    ran_s = job.duration_s if trigger is None else trigger.work_s
    return Ran(str(place), job, ran_s, ran_s, trigger is not None)


def test_a_real_run_that_goes_as_simulated_has_the_simulated_scores() -> None:
    jobs = PLAN.deal(3)
    went = [as_simulated(PLAN, place, job) for place, job in enumerate(jobs)]

    real, simulated = measured(PLAN, went, {}).scores, predicted(PLAN, jobs)["simulated on"].scores

    for name in ("jct_mean_s", "w1_gpu_h", "w3_gpu_h", "w4_gpu_h", "stopped", "precision", "recall"):
        assert getattr(real, name) == pytest.approx(getattr(simulated, name)), name
    assert real.stopped > 5


def repeats(plan: Plan, late_s: float = 0.0) -> list[Repeat]:
    """Return two repeats whose real jobs all went as simulated without a rule, but ended so much later."""
    made = []
    for seed in (0, 1):
        jobs = plan.deal(seed)
        runs = predicted(plan, jobs)
        went = [Ran(str(n), job, job.duration_s + late_s, job.duration_s, False) for n, job in enumerate(jobs)]
        made.append(Repeat(seed, {**runs, **dict.fromkeys(("real off", "real on"), measured(plan, went, {}))}))
    return made


def test_figures_are_in_hours_of_the_workload_whatever_the_clock() -> None:
    slow, quick = (figures.figures(plan, repeats(plan)) for plan in (PLAN, replace(PLAN, hour_s=1.5)))

    for one, other in zip(slow, quick, strict=True):
        assert one.arms["simulated on"].mean == pytest.approx(other.arms["simulated on"].mean)


def test_late_ends_show_as_the_difference_between_reality_and_prediction() -> None:
    made = repeats(PLAN, late_s=3.0)

    found = figures.figures(PLAN, made)

    jct = found[0]
    assert jct.arms["real off"].mean - jct.arms["simulated off"].mean == pytest.approx(1.0)  # 3 s are an hour
    assert figures.apart(found, made)[1].startswith("mean JCT: without the daemon reality is +")


def test_one_repeat_has_no_interval_in_text_json_or_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    found = figures.figures(PLAN, repeats(PLAN)[:1])

    told = json.loads(json.dumps(figures.as_data(found), allow_nan=False))
    picture.draw(found, tmp_path / "compare.png")

    assert "inf" not in figures.table(found)
    assert told[0]["arms"]["real on"]["ci95_low"] is None
    assert (tmp_path / "compare.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("wrong", ["--jobs=0", "--repeats=-1", "--hour-s=nan", "--load=0", "--nodes=x"])
def test_an_impossible_option_is_named(wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(["--directory", "x", wrong])

    assert ended.value.code == 2
    assert wrong.partition("=")[0] in capsys.readouterr().err
