"""The units: systemd reads them without complaint, and gives them little to do harm with."""

import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from evalstopd.adapters.site_key import read_site_key
from evalstopd.keeper import keeper
from evalstopd.settings import MOST_TICK_S, DaemonSettings, Settings, SlurmSettings, known_keys

UNITS = Path(__file__).parents[2] / "systemd"
README = (UNITS.parent / "README.md").read_text().partition("## Installation on a cluster")[2]
SERVICES = ("evalstopd.service", "evalstopd-keeper.service")


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """The units with programs that exist here, as systemd looks for them."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("UNIT TESTS SKIPPED: systemd-analyze is not installed (Debian package systemd)")
    for unit in (*UNITS.glob("*.service"), *UNITS.glob("*.socket")):
        text = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", unit.read_text(), flags=re.MULTILINE)
        (tmp_path / unit.name).write_text(text)
    for folder in UNITS.glob("*.service.d"):
        shutil.copytree(folder, tmp_path / folder.name)
    return tmp_path


def analyze(*arguments: str) -> str:
    done = subprocess.run(
        ["systemd-analyze", *arguments], capture_output=True, text=True, errors="replace", timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("service", SERVICES)
def test_systemd_reads_it_without_complaint(units: Path, service: str) -> None:
    assert analyze("verify", str(units / service)).strip() == ""


@pytest.mark.parametrize("service", SERVICES)
def test_its_exposure_is_two_or_less(units: Path, service: str) -> None:
    said = analyze("security", "--offline=true", "--threshold=20", str(units / service))

    assert re.search(r"Overall exposure level for \S+: [01]\.\d|: 2\.0", said)


def test_the_site_key_comes_as_a_credential_that_the_settings_find(units: Path) -> None:
    """The drop-in is read with the unit, and what it names is a known variable."""
    drop_in = units / "evalstopd.service.d" / "mac-key.conf"
    shown = analyze("verify", str(units / "evalstopd.service"))
    drop_in.write_text(drop_in.read_text().replace("LoadCredential=mac-key:", "LoadCredential="))

    assert shown.strip() == ""
    assert "mac-key.conf" in analyze("verify", str(units / "evalstopd.service"))
    assert {"binding.mac_key"} <= set(known_keys(Settings))


def test_the_daemon_has_no_capability_and_no_new_privileges() -> None:
    text = (UNITS / "evalstopd.service").read_text()

    assert "\nCapabilityBoundingSet=\n" in text
    assert "\nNoNewPrivileges=yes\n" in text
    assert "\nUser=evalstopd\n" in text


def test_the_watchdog_waits_for_three_passes_that_come_as_seldom_as_they_may() -> None:
    """By the unit and by the settings: more seldom, and systemd would end a daemon that is well."""
    minutes = re.search(r"^WatchdogSec=(\d+)min$", (UNITS / "evalstopd.service").read_text(), re.MULTILINE)
    assert minutes is not None

    assert 60 * int(minutes[1]) >= 3 * MOST_TICK_S
    DaemonSettings(tick_s=MOST_TICK_S)
    for section, key in ((DaemonSettings, "tick_s"), (SlurmSettings, "min_call_interval_s")):
        with pytest.raises(ValueError, match="less than or equal to 300"):
            section(**{key: MOST_TICK_S + 1})


def test_the_keepers_memory_is_enough_for_as_many_children_as_it_may_have() -> None:
    text = (UNITS / "evalstopd-keeper.service").read_text()
    most = re.search(r"^MemoryMax=(\d+)G$", text, re.MULTILINE)
    assert most is not None

    assert int(most[1]) * 1024**3 > keeper.MAX_CHILDREN * keeper.MAX_MEMORY
    assert int(re.findall(r"^TasksMax=(\d+)$", text, re.MULTILINE)[0]) > keeper.MAX_CHILDREN


def test_the_keepers_unit_waits_longer_for_its_end_than_a_request_may_take() -> None:
    text = (UNITS / "evalstopd-keeper.service").read_text()
    limit, patience = (re.search(rf"{name}[= ](\d+)", text) for name in ("--time-limit-s", "TimeoutStopSec"))
    assert limit is not None
    assert patience is not None

    assert int(limit[1]) + 2 * keeper.PEER_TIME_S < int(patience[1])


def test_the_group_may_read_the_store_and_nobody_else_may() -> None:
    text = (UNITS / "evalstopd.service").read_text()

    assert re.search(r"^StateDirectoryMode=0750$", text, re.MULTILINE)
    assert re.search(r"^UMask=0027$", text, re.MULTILINE)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A host's folders, with what it needs of ours where systemd looks for it."""
    if shutil.which("systemd-sysusers") is None:
        pytest.skip("ACCOUNT NOT TESTED: systemd-sysusers is not installed (Debian package systemd)")
    for name in ("sysusers", "tmpfiles"):
        (tmp_path / "etc" / f"{name}.d").mkdir(parents=True)
        shutil.copy(UNITS / f"evalstopd.{name}", tmp_path / "etc" / f"{name}.d" / "evalstopd.conf")
    (tmp_path / "var" / "lib").mkdir(parents=True)
    return tmp_path


def on_host(tool: str, *arguments: str) -> str:
    done = subprocess.run([tool, *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_systemd_makes_the_account_without_complaint(root: Path) -> None:
    said = on_host("systemd-sysusers", f"--root={root}")
    made = (root / "etc" / "passwd").read_text().split(":")

    assert "Failed" not in said
    assert "not a valid" not in said
    assert (made[0], made[5]) == ("evalstopd", "/var/lib/evalstopd")
    assert (root / "etc" / "group").read_text().startswith("evalstopd:")


def test_systemd_makes_the_folders_for_root_and_the_account(root: Path) -> None:
    """Whoever may not give files away makes none."""
    if os.geteuid() != 0:
        pytest.skip("FOLDERS NOT TESTED: giving them to the account needs root")
    on_host("systemd-sysusers", f"--root={root}")
    said = on_host("systemd-tmpfiles", f"--root={root}", "--create", "evalstopd.conf")
    uid = int((root / "etc" / "passwd").read_text().split(":")[2])
    found = {name: (root / name).stat() for name in ("etc/evalstopd", "var/lib/evalstopd")}

    assert said == ""
    assert {name: stat.filemode(each.st_mode) for name, each in found.items()} == {
        "etc/evalstopd": "drwxr-xr-x",
        "var/lib/evalstopd": "drwxr-x---",
    }
    assert [each.st_uid for each in found.values()] == [0, uid]


def test_the_steps_of_the_readme_make_a_site_key_that_the_daemon_takes(tmp_path: Path) -> None:
    """In the folder that the step before has made."""
    command = re.search(r"\(umask .*?/etc/evalstopd/mac-key\)", README)
    assert command is not None
    (tmp_path / "evalstopd").mkdir()
    subprocess.run(["sh", "-c", command[0].replace("/etc/", f"{tmp_path}/")], check=True, timeout=60)

    assert len(read_site_key(tmp_path / "evalstopd" / "mac-key").key) == 64


def test_the_steps_of_the_readme_come_in_an_order_in_which_each_has_what_it_needs() -> None:
    steps = (
        "systemd-sysusers evalstopd.conf", "systemd-tmpfiles --create evalstopd.conf", "systemctl daemon-reload",
        "/etc/evalstopd/mac-key)", "Write `/etc/evalstopd/evalstopd.toml`", "evalstopd db upgrade'",
        "systemctl enable --now evalstopd-keeper.socket", "runuser -u evalstopd -- evalstopd check",
        "systemctl enable --now evalstopd\n",
    )  # fmt: skip
    places = [README.index(step) for step in steps]

    assert places == sorted(places)
