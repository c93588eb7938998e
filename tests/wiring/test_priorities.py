"""Settings of the order of waiting jobs: off unless asked for, and what cannot be had live is refused by one line."""

from pathlib import Path

import pytest

from evalstopd.core.shift import Lever
from evalstopd.errors import Misconfigured
from evalstopd.settings import Settings, load_settings, make_priorities


def settings(tmp_path: Path, text: str) -> Settings:
    path = tmp_path / "evalstopd.toml"
    path.write_text(text)
    return load_settings(path, {})


def test_off_unless_asked_for(tmp_path: Path) -> None:
    assert make_priorities(settings(tmp_path, "")) is None


def test_the_sites_word_is_taken(tmp_path: Path) -> None:
    text = '[priorities]\npolicy = "srtf-est:floor=0"\nmechanism = "priority"\npartitions = ["a"]\nmax_changes = 9\n'
    asked = make_priorities(settings(tmp_path, text))
    assert asked is not None
    assert (asked.policy.spec, asked.lever, asked.partitions, asked.most) == (
        "srtf-est:floor=0",
        Lever.PRIORITY,
        ("a",),
        9,
    )
    assert (asked.gain, asked.loss_metric) == (None, "")


@pytest.mark.parametrize("section", ["priorities", "preempt"])
def test_a_policys_name_is_taken_in_any_case(tmp_path: Path, section: str) -> None:
    read = settings(tmp_path, f'[{section}]\npolicy = "SRTF-Est"\n')
    assert getattr(read, section).policy == "srtf-est"


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("slaq", "slaq gives running jobs more or fewer GPUs, which Slurm cannot: it is for simulations"),
        ("goodput", "goodput gives running jobs"),
        ("shortest", "unknown policy 'shortest'; known: fifo, las, loss-aware, sjf-est, srtf-est"),
        ("las:first=9000", "the limits must rise"),
        ("loss-aware", "it needs priorities.loss_aware = true"),
    ],
)  # fmt: skip
def test_what_cannot_be_had_live_is_refused_by_name(tmp_path: Path, policy: str, words: str) -> None:
    with pytest.raises(Misconfigured, match=f"priorities.policy: .*{words}"):
        settings(tmp_path, f'[priorities]\npolicy = "{policy}"\n')


def test_loss_aware_where_the_site_switches_it_on_has_a_bounded_gain(tmp_path: Path) -> None:
    text = '[priorities]\npolicy = "loss-aware"\nloss_aware = true\nloss_gain = 4\nloss_metric = "train/loss"\n'
    asked = make_priorities(settings(tmp_path, text))
    assert asked is not None
    assert (asked.gain, asked.loss_metric) == (4, "train/loss")


@pytest.mark.parametrize(("tick_s", "floor_s", "effective_s"), [(30, 120, 120), (30, 0, 30), (300, 120, 300)])
def test_no_pass_asks_slurm_sooner_than_the_site_allows(
    tmp_path: Path, tick_s: int, floor_s: int, effective_s: int
) -> None:
    text = f"[daemon]\ntick_s = {tick_s}\n[slurm]\nmin_call_interval_s = {floor_s}\n"
    assert settings(tmp_path, text).daemon.tick_s == effective_s
