"""How jobs are stopped, by partition, metric and rule, as the settings file says it."""

from pathlib import Path

import pytest

from evalstopd.core.model import StopAction
from evalstopd.errors import Misconfigured
from evalstopd.settings import load_settings, make_rules

FILE = """
[mlflow]
tracking_uri = "http://127.0.0.1:1"
[enforce]
stop_action = "requeue-hold-or-cancel"
[[enforce.actions]]
partition = "long"
stop_action = "requeue-hold"
[[enforce.actions]]
metric = "eval/*"
rule = "k-declines"
stop_action = "cancel"
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "settings.toml"
    path.write_text(text)
    return path


def test_each_entry_is_a_rule_of_its_own(tmp_path: Path) -> None:
    rules = make_rules(load_settings(write(tmp_path, FILE), {}))

    assert rules.action_for("long", "eval/x", "k-declines:k=2") is StopAction.REQUEUE_HOLD
    assert rules.action_for("gpu", "eval/x", "k-declines:k=2") is StopAction.CANCEL
    assert rules.action_for("gpu", "eval/x", "recommended") is StopAction.HOLD_OR_CANCEL


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"k-declines"', '"k-decline"'),
        ('"cancel"', '"kill"'),
        ("partition =", "partitions ="),
        ('"requeue-hold"', '""'),
    ],
)
def test_an_entry_that_means_nothing_is_refused(tmp_path: Path, old: str, new: str) -> None:
    with pytest.raises(Misconfigured, match="enforce"):
        load_settings(write(tmp_path, FILE.replace(old, new)), {})
