"""Real curves dealt to jobs."""

import json
from pathlib import Path

import pytest
from evalstopd_sim.deal import read_curves, redeal
from evalstopd_sim.presets import PRESETS
from evalstopd_sim.workload import Workload

from evalstopd.errors import Misconfigured


def line(label: str = "healthy", values: object = (1.0, 2.0, 3.0, 4.0, 3.0, 2.0), **more: object) -> str:
    return json.dumps({"values": values, "higher_is_better": True, "label": label} | more)


def write(tmp_path: Path, *lines: str) -> str:
    path = tmp_path / "curves.jsonl"
    path.write_text("\n".join(lines))
    return str(path)


def test_curves_are_stretched_turned_and_cut(tmp_path: Path) -> None:
    falls = line("declining", list(range(40)), higher_is_better=False)

    curves = read_curves(write(tmp_path, line(), falls, line("ambiguous"), line(primary=False)), most=20)

    assert curves.healthy[0].scores == (
        0.0,
        pytest.approx(1 / 3),
        pytest.approx(2 / 3),
        1.0,
        pytest.approx(2 / 3),
        pytest.approx(1 / 3),
    )
    assert (len(curves.declining[0].scores), curves.declining[0].scores[0], curves.declining[0].scores[-1]) == (
        20,
        1.0,
        0.0,
    )
    assert curves.left_out == 2


def test_missing_scores_are_passed_over(tmp_path: Path) -> None:
    holes = line("healthy", [1.0, float("nan"), 2.0, 3.0, 4.0, float("inf"), 5.0, 6.0])

    curves = read_curves(write(tmp_path, holes, line("declining")))

    assert len(curves.healthy[0].scores) == 6


def test_hacking_jobs_get_declining_curves_with_their_peak_and_others_keep_theirs() -> None:
    curves = read_curves("curves")
    drawn = list(Workload(PRESETS["paper"], 64, 1).jobs(200))

    dealt = list(redeal(iter(drawn), curves, 1))

    assert dealt == list(redeal(iter(drawn), curves, 1))
    for before, after in zip(drawn, dealt, strict=True):
        if before.kind != "rlhf":
            assert before == after
            continue
        pool = curves.declining if before.hacking else curves.healthy
        assert after.scores in {curve.scores for curve in pool}
        assert after.hacking is before.hacking
        assert not after.hacking or after.levels[after.marks.index(after.peak_s)] == max(after.levels)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ((line(), "{"), "curves.jsonl:2: not a curve"),
        ((line(values="abc"),), "curves.jsonl:1: not a curve"),
        ((line(higher_is_better="no"),), "curves.jsonl:1: not a curve"),
        (("[1]",), "curves.jsonl:1: not a curve"),
        ((line(),), "at least one declining and one healthy"),
    ],
)
def test_bad_curves_are_told_with_their_line(tmp_path: Path, lines: tuple[str, ...], words: str) -> None:
    with pytest.raises(Misconfigured, match=words):
        read_curves(write(tmp_path, *lines))
