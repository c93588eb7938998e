"""Several datasets under one name: one's values are told from the others' for certain, or nothing is."""

import random
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstopd.core.datasets import Dataset, Parted, Told, as_dataset, dataset_of, fits, needs_telling, parted
from evalstopd.core.mixed import repeated
from evalstopd.core.model import Point

A, B, A2 = Dataset("val", "aa"), Dataset("other", "bb"), Dataset("val", "cc")
M = "acc"
Logged = Mapping[Dataset | None, list[tuple[int, float, int]]]


def points_of(logged: Logged) -> list[Point]:
    found = [Point("r", *values) for of in logged.values() for values in of]
    random.Random(1).shuffle(found)
    return found


def told_by(logged: Logged) -> Told:
    of: dict[tuple[str, int, int, float], frozenset[Dataset]] = {}
    for dataset, values in logged.items():
        for step, value, stamp in values if dataset is not None else ():
            mark = (M, step, stamp, value)
            of[mark] = of.get(mark, frozenset()) | {dataset}  # type: ignore[arg-type]
    return Told(of)


def apart(logged: Logged, asked: str, *, before: bool = False) -> Parted:
    return parted(M, points_of(logged), told_by(logged), asked, apart=before)


def series(base: float, offset: int = 0, steps: int = 5) -> list[tuple[int, float, int]]:
    return [(step, base + step / 100, 100 * step + offset) for step in range(steps)]


@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.floats(-1, 1), st.integers(0, 50), st.booleans()),
        min_size=1,
        unique_by=lambda each: each[:3],
    ),
    st.integers(0, 2**32),
)
def test_every_point_that_is_told_goes_to_its_own_dataset_and_no_other(
    logged: list[tuple[int, float, int, bool]], seed: int
):
    by_set: dict[Dataset | None, list[tuple[int, float, int]]] = {A: [], B: []}
    for step, value, stamp, first in logged:
        by_set[A if first else B].append((step, value, stamp))
    points = points_of(by_set)
    random.Random(seed).shuffle(points)
    for dataset in (A, B):
        found = parted(M, points, told_by(by_set), dataset.text, apart=True)
        if by_set[dataset]:
            assert sorted((p.step, p.value, p.timestamp_ms) for p in found.points) == sorted(by_set[dataset])
            assert found.dataset == dataset.text
        else:
            assert found.untold


@given(st.integers(0, 4), st.integers(0, 4))
def test_one_value_of_nobodys_anywhere_but_at_the_newest_step_refuses_all(step: int, place: int):
    logged: Logged = {A: series(0.1), B: series(0.5, 1), None: [(step, 0.9, 100 * step + 2 + place)]}
    found = apart(logged, "val")
    if step == 4:
        assert (found.dataset, len(found.points)) == (A.text, 5)
    else:
        assert (found.dataset, len(found.points)) == ("", 11)
        assert "1 of 11 values" in found.untold


def test_a_value_at_the_newest_step_that_was_logged_long_ago_is_not_waited_for():
    """The step was reached in an earlier life too; what that left untold stays so."""
    logged: Logged = {A: series(0.1, 1_000), B: series(0.5, 1_001), None: [(4, 0.9, 5)]}
    assert "1 of 11 values" in apart(logged, "val").untold


def test_a_value_that_two_datasets_share_is_of_both():
    """The same score, at the same step, in the same millisecond: which is whose does not matter."""
    logged: Logged = {A: [*series(0.1), (9, 0.5, 900)], B: [*series(0.5, 1), (9, 0.5, 900)]}
    points = {(p.step, p.value, p.timestamp_ms): p for p in points_of(logged)}.values()
    for asked in ("val", "other"):
        found = parted(M, list(points), told_by(logged), asked, apart=False)
        assert 9 in {point.step for point in found.points}


def test_a_set_that_changed_its_contents_is_two_and_its_name_means_neither():
    found = apart({A: series(0.1), A2: series(0.5, 1)}, "val")
    assert (found.dataset, len(found.points)) == ("", 10)
    assert "val means 2 datasets: val (digest aa), val (digest cc)" in found.untold
    assert apart({A: series(0.1), A2: series(0.5, 1)}, "cc").dataset == "val@cc"


def test_a_digest_that_is_anothers_name_means_neither():
    found = apart({A: series(0.1), Dataset("aa", "dd"): series(0.5, 1)}, "aa")
    assert (found.dataset, "means 2 datasets" in found.untold) == ("", True)


def test_many_datasets_are_named_by_a_few_and_counted():
    logged = {Dataset(f"d{number}", "x"): series(number, number) for number in range(9)}
    assert (
        "9 datasets: d0 (digest x), d1 (digest x), d2 (digest x), d3 (digest x) and 5 more" in apart(logged, "").untold
    )


def test_a_few_values_twice_are_no_trouble_where_nothing_can_be_told_apart():
    """A value that was corrected once, with a site that names a dataset for all its jobs."""
    logged: Logged = {None: [*series(0.1, steps=12), (3, 0.9, 301)]}
    found = apart(logged, "val")
    assert (found.untold, found.dataset, len(found.points)) == ("", "", 13)
    assert apart(logged, "val", before=True).untold


def test_why_the_models_could_not_be_asked_is_said():
    points = points_of({None: [*series(0.1), *series(0.5, 1)]})
    assert parted(M, points, "no permission", "val", apart=False) == Parted(tuple(points), "", "no permission")


def test_models_are_asked_where_one_name_has_several_series_or_may_have_and_one_is_chosen():
    single, twice = points_of({None: series(0.1)}), points_of({None: [*series(0.1), *series(0.5, 1)]})
    once = points_of({None: [*series(0.1), (2, 0.9, 201)]})
    for labelled in (False, True):
        assert needs_telling(single, "val", apart=False, labelled=labelled) is labelled
        assert needs_telling(single, "val", apart=True, labelled=labelled)
        assert not needs_telling(single, "", apart=True, labelled=labelled)
        assert needs_telling(once, "val", apart=False, labelled=labelled)
        assert not needs_telling(once, "", apart=False, labelled=labelled)
        assert needs_telling(twice, "", apart=False, labelled=labelled)
        assert not needs_telling([], "val", apart=False, labelled=labelled)


def test_the_steps_with_several_values_are_those_next_to_each_other_in_time():
    assert repeated(
        points_of({None: [(1, 0.1, 1), (1, 0.2, 2), (2, 0.3, 3), (1, 0.4, 4), (3, 0.1, 5), (3, 0.1, 6)]})
    ) == {1}


@pytest.mark.parametrize("name", ["", "n" * 201, "a\nb", "a\x00", "\ud800", "\u202e"])
def test_what_no_sane_program_calls_a_dataset_is_none(name: str):
    assert as_dataset(name, "aa") is None


@pytest.mark.parametrize("digest", ["a@b", "a b", "x" * 65, "é"])
def test_a_digest_with_odd_signs_is_none(digest: str):
    assert as_dataset("val", digest) is None


@given(st.text(min_size=1, max_size=200), st.from_regex(r"[0-9a-f]{0,36}", fullmatch=True))
def test_a_dataset_is_made_again_from_its_text_and_meant_by_it(name: str, digest: str):
    dataset = as_dataset(name, digest)
    if dataset is not None:
        assert dataset_of(dataset.text) == dataset
        assert fits(dataset.text, dataset)


def test_an_empty_choice_means_no_dataset_not_even_one_without_a_digest():
    assert not fits("", Dataset("val", ""))


def test_a_chosen_dataset_that_has_no_value_yet_is_not_judged_by_anothers():
    found = apart({B: series(0.1)}, "val")
    assert (found.dataset, len(found.points)) == ("", 5)
    assert "val is none of the dataset other (digest bb)" in found.untold
    assert apart({B: series(0.1)}, "").untold == ""


@pytest.mark.parametrize("steps", range(1, 5))
def test_before_the_third_step_a_chosen_dataset_that_has_no_value_yet_has_no_evals_and_nothing_is_said(steps: int):
    others = series(0.1, steps=steps)
    found = apart({B: others}, "val")
    assert (len(found.points), bool(found.untold)) == ((steps, True) if steps >= 3 else (0, False))
    unasked = parted(M, points_of({None: others}), "no permission", "val", apart=False)
    assert (len(unasked.points), unasked.untold) == ((steps, "no permission") if steps >= 3 else (0, ""))


def test_a_chosen_dataset_is_its_own_values_however_late_they_come():
    lagging = [(step, value, stamp + 250) for step, value, stamp in series(0.9)]
    for seen in range(1, 6):
        found = apart({A: lagging[:seen], B: series(0.5, steps=9)}, "val")
        assert (found.dataset, sorted(p.value for p in found.points)) == (A.text, [v for _, v, _ in lagging[:seen]])


def test_models_that_cannot_be_asked_leave_a_chosen_dataset_untold():
    points = points_of({None: series(0.1)})
    assert parted(M, points, "no permission", "val", apart=False).untold == "no permission"
    assert parted(M, points, "no permission", "", apart=False).untold == ""
    assert parted(M, points, Told({}), "val", apart=False).untold == ""
