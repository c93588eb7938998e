"""One series out of a run's points, what is read beside it, and how datasets are listed in a line."""

from dataclasses import replace
from itertools import permutations

import pytest

from evalstopd.core.curve import curve, series
from evalstopd.core.datasets import Dataset, Parted, Told, as_dataset, dataset_of, parted
from evalstopd.core.guards import MIXED, UNTOLD, Caution
from evalstopd.core.mixed import mixed_caution, untold_caution
from evalstopd.core.model import Point

A, B = Dataset("val", "aa"), Dataset("other", "bb")


def point(step: int, value: float = 0.5, at_ms: int = 0) -> Point:
    return Point("r", step, value, at_ms, metric="acc")


def told(of: dict[Point, Dataset]) -> Told:
    return Told({("acc", p.step, p.timestamp_ms, p.value): frozenset({dataset}) for p, dataset in of.items()})


def test_a_series_is_of_one_metric_and_of_one_dataset() -> None:
    points = [point(1), replace(point(2), metric="loss"), replace(point(3), dataset="val@aa")]

    assert [[p.step for p in series(points, *of)] for of in (("acc",), ("loss",), ("acc", "val@aa"))] == [[1], [2], [3]]


def test_from_a_later_runs_first_step_on_nothing_of_an_earlier_run_counts_even_if_it_was_logged_later() -> None:
    earlier = [Point("a", 1, 0.1, 1), Point("a", 2, 0.2, 2), Point("a", 3, 0.9, 30)]
    later = [Point("b", 3, 0.3, 20), Point("b", 4, 0.4, 21)]

    for points in permutations([*earlier, *later]):
        assert [(each.step, each.score) for each in curve(points)] == [(1, 0.1), (2, 0.2), (3, 0.3), (4, 0.4)]


def test_what_is_logged_beside_a_dataset_is_what_is_not_told_to_be_anothers_alone() -> None:
    mine, others, nobodys, both = point(1), point(2), point(3), point(4)
    known = told({mine: A, others: B})
    known = Told({**known.of, ("acc", 4, 0, 0.5): frozenset({A, B})})

    assert known.beside("acc", [mine, others, nobodys, both], A) == (mine, nobodys, both)
    assert known.beside("loss", [mine, others], A) == (mine, others), "told of another metric"


@pytest.mark.parametrize("name", ["v", "val", "a@b", "n" * 200])
@pytest.mark.parametrize("digest", ["", "9f", "f" * 64])
def test_what_a_program_calls_a_dataset_is_one_and_is_made_again_from_its_text(name: str, digest: str) -> None:
    assert as_dataset(name, digest) == dataset_of(f"{name}@{digest}") == Dataset(name, digest)


def untold(datasets: list[Dataset], asked: str) -> str:
    points = [point(at, at_ms=at) for at in range(len(datasets))]
    return parted("acc", points, told(dict(zip(points, datasets, strict=True))), asked, apart=True).untold


HOW = "the owner's evalstop_dataset=NAME (or its digest), else the site's rules.dataset, chooses one"


@pytest.mark.parametrize(
    ("datasets", "asked", "said"),
    [
        ([A], "x", f"x is none of the dataset val (digest aa): {HOW}"),
        ([B, A], "", f"they are of 2 datasets: other (digest bb), val (digest aa): {HOW}"),
        (
            [Dataset(n, "") for n in "abcd"],
            "",
            f"they are of 4 datasets: a (digest ), b (digest ), c (digest ), d (digest ): {HOW}",
        ),
        ([Dataset("\u00e9", "aa")], "x", f"x is none of the dataset '\\xe9' (digest aa): {HOW}"),
        ([Dataset("n" * 61, "aa")], "x", f"x is none of the dataset '{'n' * 60}' (digest aa): {HOW}"),
        ([Dataset("n" * 60, "aa")], "\x1b", f"'\\x1b' is none of the dataset {'n' * 60} (digest aa): {HOW}"),
    ],
)
def test_datasets_are_listed_in_one_short_harmless_line(datasets: list[Dataset], asked: str, said: str) -> None:
    assert untold(datasets, asked) == said


def test_of_a_single_step_a_value_may_still_get_its_dataset() -> None:
    first, second = point(1, at_ms=5), point(1, 0.7, at_ms=6)

    assert parted("acc", [first, second], told({first: A}), "val", apart=True) == Parted((first,), "val@aa")


def test_a_value_of_the_newest_step_counts_as_new_from_the_moment_of_the_last_one_before() -> None:
    old, new, stray = point(1, at_ms=50), point(2, at_ms=60), point(2, 0.7, at_ms=50)

    assert parted("acc", [old, new, stray], told({old: A, new: A}), "val", apart=True).dataset == "val@aa"
    before = replace(stray, timestamp_ms=49)
    assert "1 of 3 values" in parted("acc", [old, new, before], told({old: A, new: A}), "val", apart=True).untold


def test_what_could_not_be_told_apart_is_refused_and_said_anew_once_somebody_chose() -> None:
    assert untold_caution("why", chosen=False) == Caution(MIXED, "several series under one name: why", refuse=True)
    assert untold_caution("why", chosen=True) == Caution(UNTOLD, "several series under one name: why", refuse=True)


def test_several_series_show_by_three_steps_that_are_half_of_all() -> None:
    def mixed(twice: int, single: int) -> bool:
        doubled = [point(step, value, 10 * step + at) for step in range(twice) for at, value in enumerate((0.1, 0.2))]
        return mixed_caution([*doubled, *(point(100 + n, 0.3, 9000 + n) for n in range(single))]) is not None

    assert [mixed(2, 0), mixed(3, 0), mixed(3, 3), mixed(3, 4), mixed(5, 5), mixed(5, 6)] == [
        False, True, True, False, True, False,
    ]  # fmt: skip


def lagging(lag: int, steps: int, every: int = 1) -> list[Point]:
    """Return the points of a series, with those of another that comes that many evals later."""
    logged: list[tuple[int, float]] = []
    for step in range(steps):
        logged.append((step, 0.5 + step / 100))
        logged += [(step - lag, 0.9 + step / 100)] if step >= lag and step % every == 0 else []
    return [point(step, value, 10 * place) for place, (step, value) in enumerate(logged)]


@pytest.mark.parametrize("lag", [1, 2, 3, 10])
def test_a_series_that_lags_behind_shows_from_the_next_eval_of_the_other_on(lag: int) -> None:
    points = lagging(lag, lag + 12)
    second = lag + 2

    shown = [mixed_caution(points[:count]) is not None for count in range(len(points) + 1)]
    assert shown == [count > second for count in range(len(points) + 1)]
    caution = mixed_caution(points)
    assert caution is not None
    assert (caution.code, caution.refuse, "lags behind" in caution.text) == (MIXED, True, True)


def test_a_series_that_lags_behind_and_comes_seldom_is_known_for_good_by_its_third_value() -> None:
    points = lagging(4, 40, every=8)

    shown = [mixed_caution(points[:count]) is not None for count in range(len(points) + 1)]
    third = next(count for count in range(len(points)) if sum(p.value >= 0.9 for p in points[:count]) == 3)
    assert all(shown[third + 1 :])


def test_one_value_that_was_corrected_late_holds_a_job_for_three_evals_at_most() -> None:
    points = [*(point(step, 0.5 + step / 100, step) for step in range(6)), point(2, 0.1, 7)]
    more = [point(step, 0.5 + step / 100, step + 10) for step in range(6, 12)]

    assert [mixed_caution([*points, *more[:count]]) is not None for count in range(6)] == [
        False, True, True, False, False, False,
    ]  # fmt: skip


def test_a_training_that_starts_over_is_no_second_series() -> None:
    points = [point(step, 0.5 + step / 100, step) for step in range(6)]
    twice = [*((step, 0.7 + step / 100) for step in range(2, 9)), *((step, 0.8 + step / 100) for step in range(4, 12))]
    over = [point(step, value, 100 + place) for place, (step, value) in enumerate(twice)]

    for count in range(len(over) + 1):
        assert mixed_caution([*points, *over[:count]]) is None
