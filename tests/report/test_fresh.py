"""The decision on new curves: what counts as worse, that sources are drawn whole, what is truly lost."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("numpy")

from bench import filtered, fresh
from bench.fresh import Judged, decision, interval, judged, losing, saved, truly_lost, value
from evalstopd.report.replay.judge import outcome_at

NEW = Path(__file__).parents[2] / "examples" / "curves" / "curves.jsonl"
HEALTHY, DECLINING = {"label_true": "healthy"}, {"label_true": "declining"}


def run(source: str, labels: dict[str, str], *, stopped: bool, share: float = 0.0, lost: float = 0.0) -> Judged:
    return Judged(source, "made up", labels, stopped, share, lost)


TODAY = [
    *(run(f"s{i}", HEALTHY, stopped=False) for i in range(9)),
    *(run(f"s{i}", DECLINING, stopped=i < 5, share=0.4 * (i < 5)) for i in range(9)),
]


def changed(place: int, **to: object) -> list[Judged]:
    return [*TODAY[:place], replace(TODAY[place], **to), *TODAY[place + 1 :]]  # type: ignore[arg-type]


def test_the_same_is_not_adopted_and_one_more_run_found_is() -> None:
    better = changed(17, stopped=True, saved=0.4)
    assert not decision(TODAY, TODAY)[0]
    assert decision(better, TODAY)[0]


@pytest.mark.parametrize(
    ("place", "to"),
    [
        pytest.param(0, {"stopped": True, "saved": 0.5}, id="a healthy run stopped"),
        pytest.param(9, {"stopped": False, "saved": 0.9}, id="a declining run missed"),
        pytest.param(9, {"saved": 0.1}, id="less saved"),
        pytest.param(9, {"saved": 0.6, "truly_lost": 0.2}, id="a run that loses"),
    ],
)
def test_one_thing_worse_and_it_is_not_adopted(place: int, to: dict[str, object]) -> None:
    assert not decision(changed(place, **to), TODAY)[0]


def test_false_stops_that_may_be_many_more_are_too_many() -> None:
    """Two false stops for two others are no more in sum; that it might be worse elsewhere is what decides."""
    today = changed(0, stopped=True)
    candidate = [replace(each, stopped=each.source == "s1") if i < 9 else each for i, each in enumerate(TODAY)]
    candidate[17] = replace(candidate[17], stopped=True, saved=0.4)
    adopted, told = decision(candidate, today)
    assert not adopted
    assert "false stops: no worse" in told[1]


def test_with_errors_told_nothing_is_decided() -> None:
    assert fresh.verdict(adopted=True, told=False) == "the candidate is adopted"
    assert fresh.verdict(adopted=False, told=False) == "the candidate is NOT adopted"
    assert "decides nothing" in fresh.verdict(adopted=True, told=True)


def test_sources_are_drawn_whole() -> None:
    """Ten runs of one source are worth one: its share comes all or not at all, so the interval is wide."""
    together = [run("one" if i < 10 else "two", HEALTHY, stopped=False, share=float(i < 10)) for i in range(20)]
    apart = [replace(each, source=str(i)) for i, each in enumerate(together)]
    assert interval(together, saved) == (0.0, 1.0)
    assert 0.2 < interval(apart, saved)[0] < 0.5 < interval(apart, saved)[1] < 0.8
    assert interval(together, saved, together) == (0.0, 0.0)


def test_what_is_lost_is_told_by_the_truth() -> None:
    truth = [0.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0]
    assert truly_lost(truth, 7) == truly_lost(truth, 6) == 0.0
    assert truly_lost(truth, 4) == pytest.approx(1 / 1.7)
    assert truly_lost([1.0] * 5, 2) == 0.0
    assert value([run("a", HEALTHY, stopped=True, lost=0.11), run("a", HEALTHY, stopped=True, lost=0.1)], losing) == 0.5


@pytest.fixture
def curves(tmp_path: Path) -> Path:
    """Two sources: one run that falls in truth though its scores only waver, one that rises."""
    fall = [0.1 * i for i in range(8)] + [0.7 - 0.1 * i for i in range(8)]
    rows: list[dict[str, object]] = [
        {"id": "a", "algorithm": "a", "truth": fall, "values": fall, "label_true": "declining"},
        {"id": "b", "algorithm": "b", "truth": sorted(fall), "values": sorted(fall), "label_true": "healthy"},
    ]
    usual: dict[str, object] = {"steps": list(range(1, 17)), "higher_is_better": True, "eval_stderrs": [0.9] * 16}
    file = tmp_path / "curves.jsonl"
    file.write_text("".join(json.dumps(usual | row) + "\n" for row in rows))
    return file


def test_a_rule_is_judged_by_the_truth_of_a_file(curves: Path) -> None:
    """A fall is found, and not if the evals are told to be far noisier than they look."""
    silent, rows = fresh.histories_of(curves, told=False)
    told, _ = fresh.histories_of(curves, told=True)
    assert [each.stopped for each in judged("recommended", silent, rows)] == [True, False]
    assert [each.stopped for each in judged("recommended", told, rows)] == [False, False]
    assert "recall 1/1  false stops 0/1" in "\n".join(fresh.table({"recommended": judged("recommended", silent, rows)}))


def test_the_figures_of_the_new_curves_are_those_of_the_docs() -> None:
    """docs/rules.md, "New curves": what the rule of today and the candidate find and stop, and the decision."""
    histories, rows = fresh.histories_of(NEW, told=False)
    today, candidate = (judged(rule, histories, rows) for rule in (fresh.TODAY, fresh.CANDIDATE))
    said = "\n".join(fresh.table({"today": today, "candidate": candidate}))
    assert "label_true           recall 65/81  false stops 9/154" in said
    assert "label_true           recall 63/81  false stops 6/154" in said
    assert [round(value(each, losing), 3) for each in (today, candidate)] == [0.019, 0.011]
    assert not decision(candidate, today)[0]


def test_the_filter_stops_after_so_many_high_chances_in_a_row() -> None:
    assert filtered.stopped_at([0.1, 0.99, 0.2, 0.99, 0.99, 0.99], 0.95, 2) == 9
    assert filtered.stopped_at([0.1, 0.99, 0.2, 0.99], 0.95, 2) is None
    assert filtered.stopped_at([0.96], 0.95, 1) == 5


def test_the_filter_asks_after_each_eval_but_the_last(curves: Path) -> None:
    histories, _ = fresh.histories_of(curves, told=False)
    falling, rising = filtered.chances(histories, filtered.Effort(2, 60))
    assert len(falling) == len(rising) == 10
    assert falling[-1] > 0.9 > 0.5 > max(rising)
    assert outcome_at(histories[0], filtered.stopped_at(falling, 0.9, 2)).saved > 0
