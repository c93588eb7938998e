"""The settings of preemption and estimates: off by default, refused in one line where they make no sense."""

from pathlib import Path

import pytest

from evalstopd.core.preempt import PreemptRules
from evalstopd.errors import Misconfigured, Unavailable
from evalstopd.settings import Settings, load_settings, make_preempt
from evalstopd.wiring.checks.slurm import preemption, seldom
from evalstopd.wiring.estimates import estimate_days


def settings(tmp_path: Path, text: str) -> Settings:
    file = tmp_path / "evalstopd.toml"
    file.write_text(text)
    return load_settings(file, {})


def test_nobody_yields_by_default(tmp_path: Path) -> None:
    assert make_preempt(settings(tmp_path, "")) is None


def test_the_settings_become_the_rules_of_the_decision(tmp_path: Path) -> None:
    text = (
        '[preempt]\npolicy = "srtf-est:floor=0"\nmin_run_s = 60\nfresh_s = 30\nper_hour = 9\nper_job = 1\ncost_s = 5\n'
    )
    asked = make_preempt(settings(tmp_path, text))

    assert asked is not None
    assert asked.policy.spec == "srtf-est:floor=0"
    assert asked == PreemptRules(asked.policy, cost_s=5.0, min_run_s=60.0, fresh_s=30.0, per_hour=9, per_job=1)


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("fifo", "fifo requeues no running job"),
        ("sjf-est", "srtf-est or las does"),
        ("loss-aware", "loss-aware requeues no running job"),
        ("goodput", "unknown policy"),
        ("srtf-est:k=2", "no parameter"),
    ],
)
def test_what_cannot_preempt_is_refused_by_name(tmp_path: Path, policy: str, words: str) -> None:
    with pytest.raises(Misconfigured, match=f"preempt.policy: .*{words}"):
        settings(tmp_path, f'[preempt]\npolicy = "{policy}"\n')


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("", None),
        ('[priorities]\npolicy = "fifo"\n', None),
        ('[preempt]\npolicy = "las"\n', None),
        ('[priorities]\npolicy = "sjf-est"\n', 30.0),
        ('[preempt]\npolicy = "srtf-est:floor=0"\n', 30.0),
        ("[estimates]\nalways = true\ndays = 7\n", 7.0),
    ],
)
def test_accounting_is_read_only_where_something_needs_it(tmp_path: Path, text: str, days: float | None) -> None:
    assert estimate_days(settings(tmp_path, text)) == days


def test_the_check_says_that_nobody_can_yield_where_nothing_is_pinned(tmp_path: Path) -> None:
    assert preemption(settings(tmp_path, "")) == "no running job yields to a waiting one"
    with pytest.raises(Unavailable, match="no checkpoint is pinned"):
        preemption(settings(tmp_path, '[preempt]\npolicy = "las"\n'))


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ("", ""),
        ("LAS", ""),
        ("las:first=60,second=300", ""),
        ("fifo", "; but hardly ever, as fifo puts others first (priorities.policy): set both to las"),
    ],
)
def test_the_check_says_where_the_order_of_waiting_jobs_makes_it_pointless(
    tmp_path: Path, order: str, words: str
) -> None:
    text = f'[priorities]\npolicy = "{order}"\n[preempt]\npolicy = "las"\n'
    assert seldom(settings(tmp_path, text)) == words
