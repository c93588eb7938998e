"""The settings of promotion and of MLflow's own database, and what is made of them."""

from pathlib import Path

import pytest

from evalstopd.errors import Misconfigured
from evalstopd.settings import load_settings
from evalstopd.wiring.tracker import make_registry


def settings_with(tmp_path: Path, text: str):
    file = tmp_path / "evalstopd.toml"
    file.write_text(f'[mlflow]\ntracking_uri = "http://127.0.0.1:9"\n{text}')
    return load_settings(file, {})


def test_nothing_is_registered_unless_the_site_says_so(tmp_path: Path):
    assert make_registry(settings_with(tmp_path, "")) is None
    assert make_registry(settings_with(tmp_path, "[promotion]\nregistry = true\ncopy_mb = 5\n")) is not None


def test_a_name_that_could_hold_users_text_is_refused_with_the_key(tmp_path: Path):
    with pytest.raises(Misconfigured, match=r"promotion\.model"):
        settings_with(tmp_path, '[promotion]\nmodel = "{name}"\n')


def test_the_databases_address_is_never_shown(tmp_path: Path):
    settings = settings_with(tmp_path, 'database = "postgresql+psycopg://reader:hunter2@db/mlflow"\n')
    assert "hunter2" not in str(settings.shown)
    assert "hunter2" not in repr(settings)
