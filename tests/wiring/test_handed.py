"""Settings that systemd hands over as files: read by their names, shown to nobody, and no danger to the start."""

from pathlib import Path

import pytest

from evalstopd.errors import Misconfigured, WrongSettings
from evalstopd.settings import Settings, load_settings

SECRET = "s3cret"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "credentials"
    made.mkdir()
    return made


def read(folder: Path, text: str = "", **variables: str) -> Settings:
    file = folder.parent / "evalstopd.toml"
    file.write_text(text)
    return load_settings(file, {"CREDENTIALS_DIRECTORY": str(folder), **variables})


def test_a_login_and_the_stores_address_come_as_files(folder: Path) -> None:
    """With the end of a line that an editor leaves, and before what the settings' file says."""
    (folder / "mlflow.password").write_text(f"{SECRET}\n")
    (folder / "store.url").write_text(f"postgresql://evalstopd:{SECRET}@db/evalstopd\n")
    found = read(folder, '[mlflow]\nusername = "daemon"\npassword = "old"')

    assert found.mlflow.password.get_secret_value() == SECRET
    assert found.store.url == f"postgresql://evalstopd:{SECRET}@db/evalstopd"
    assert found.mlflow.username == "daemon"
    assert SECRET not in str(found.shown)


def test_a_variable_wins_over_a_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "mlflow.token").write_text("by file")
    monkeypatch.setenv("EVALSTOPD_MLFLOW__TOKEN", "by variable")

    assert read(folder, EVALSTOPD_MLFLOW__TOKEN="by variable").mlflow.token.get_secret_value() == "by variable"


def test_files_of_other_names_an_empty_one_and_no_folder_set_nothing(folder: Path) -> None:
    """Other programs' credentials, the site key's, a whole section, a list: none of them is a single setting."""
    for name in ("mac-key", "mlflow", "mlflow.pasword", "rules.metrics", "..data", "EVALSTOPD_MLFLOW__TOKEN"):
        (folder / name).write_bytes(b"\xff\x00")
    (folder / "mlflow.token").write_text("\n")
    (folder / "smtp").mkdir()

    assert read(folder) == Settings()
    assert read(folder / "none") == Settings()


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"\xff" + SECRET.encode(), "credential mlflow.token: it is no text in UTF-8"),
        (b"x" * 70_000, "credential mlflow.token: longer than 65536 bytes"),
    ],
)
def test_one_that_is_no_text_is_refused_without_what_is_in_it(folder: Path, content: bytes, line: str) -> None:
    (folder / "mlflow.token").write_bytes(content)
    with pytest.raises(Misconfigured) as caught:
        read(folder)

    assert str(caught.value) == line


def test_one_that_is_wrong_is_named_as_a_credential(folder: Path) -> None:
    (folder / "daemon.tick_s").write_text("soon")
    (folder / "mlflow.password").write_text(SECRET)
    with pytest.raises(WrongSettings) as caught:
        read(folder, "[slurm]\ntime_limit_s = 0")
    lines = str(caught.value)

    assert "credential daemon.tick_s: a number from 0.2 to 300 is needed" in lines
    assert "evalstopd.toml: slurm.time_limit_s" in lines
    assert "credential mlflow.username: " not in lines
    assert SECRET not in lines
