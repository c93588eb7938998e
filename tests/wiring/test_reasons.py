"""A reason that the admin gives in writing has words in it."""

from pathlib import Path

import pytest

from evalstopd.core.model import Rung
from evalstopd.core.rules import ServerClass, site_terms, standing
from evalstopd.core.wishes import Wishes
from evalstopd.settings import load_settings, make_rules


def written(folder: Path, text: str) -> Path:
    path = folder / "evalstopd.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("reason", ["", " ", "\\t\\n", "\u00a0"])
def test_blanks_lift_no_ceiling_and_are_no_override(tmp_path: Path, reason: str) -> None:
    """On an open server a job is warned at most, whatever blanks stand where a reason is asked for."""
    text = f'[rules]\nrung = "enforce"\n[trust]\nopen_mlflow = "{reason}"\n[enforce]\noverride = "{reason}"\n'
    settings = load_settings(written(tmp_path, text), {})
    rules = make_rules(settings)

    assert rules.server is ServerClass.OPEN
    assert standing(site_terms(rules), Wishes(), rules).terms.rung is Rung.WARN
    assert settings.enforce.override == ""


def test_a_reason_lifts_it(tmp_path: Path) -> None:
    text = '[rules]\nrung = "enforce"\n[trust]\nopen_mlflow = "one team, one server"\n'
    rules = make_rules(load_settings(written(tmp_path, text), {}))

    assert standing(site_terms(rules), Wishes(), rules).terms.rung is Rung.ENFORCE
