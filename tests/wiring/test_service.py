"""What the daemon's start refuses: a lease too short to act within, figures that cannot be served."""

import socket
import sys
import threading
from pathlib import Path

import pytest

from evalstopd.errors import Misconfigured
from evalstopd.settings import Settings, load_settings
from evalstopd.store import migrate
from evalstopd.wiring.meters import make_meters
from evalstopd.wiring.seat import make_seat
from evalstopd.wiring.service import make_service


def settings(tmp_path: Path, text: str) -> Settings:
    path = tmp_path / "evalstopd.toml"
    path.write_text(text)
    return load_settings(path, {})


def pair(tmp_path: Path, lease_s: float, limit_s: float) -> Settings:
    url = "postgresql://nobody@127.0.0.1:9/none"
    return settings(tmp_path, f'[store]\nurl = "{url}"\nlease_s = {lease_s}\n[slurm]\ntime_limit_s = {limit_s}\n')


def test_a_lease_must_be_long_enough_for_a_slurm_command_to_end_well_within_it(tmp_path: Path) -> None:
    """A lease is renewed when a third of it is over, and an act may begin just before that."""
    for lease_s in (1.0, 13.9):
        with pytest.raises(Misconfigured, match=rf"store\.lease_s: at least 14 is needed, not {lease_s:g}: a Slurm"):
            pair(tmp_path, lease_s, 5.0)

    assert not make_seat(pair(tmp_path, 14.0, 5.0)).ours
    assert settings(tmp_path, "[store]\nlease_s = 1").store.lease_s == 1, "SQLite has one daemon and no lease"


def test_two_processes_never_call_themselves_the_same(tmp_path: Path) -> None:
    """Not even one that is started again under the number of the last."""
    made = [make_seat(pair(tmp_path, 15.0, 5.0)) for _ in range(2)]

    assert made[0].lead.holder != made[1].lead.holder  # type: ignore[attr-defined]


def test_who_stands_by_asks_the_slurm_of_its_own_settings_for_its_clusters_name(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    migrate.upgrade(url)
    scontrol = tmp_path / "scontrol"
    scontrol.write_text("#!/bin/sh\necho 'ClusterName             = evt4b'\n")
    scontrol.chmod(0o755)
    text = f'[store]\nurl = "{url}"\n[slurm]\npath = "{tmp_path}:/bin"\n[mlflow]\ntracking_uri = "http://127.0.0.1:9"\n'
    given = settings(tmp_path, text)
    service = make_service(given, lambda: given, threading.Event())
    try:
        assert service.cluster() == "evt4b"
    finally:
        service.end()
        service.close()


def test_figures_are_off_unless_a_port_is_named(tmp_path: Path) -> None:
    assert make_meters(settings(tmp_path, "")) is None


def test_figures_without_their_library_name_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    monkeypatch.delitem(sys.modules, "evalstopd.meters.prometheus", raising=False)
    with pytest.raises(Misconfigured, match=r"pip install 'evalstopd\[metrics\]'"):
        make_meters(settings(tmp_path, "[metrics]\nport = 9464\n"))


def test_a_port_that_is_taken_is_named_as_a_wrong_setting(tmp_path: Path) -> None:
    """Else systemd would start the daemon again and again."""
    pytest.importorskip("prometheus_client", reason="METRICS TESTS SKIPPED: no prometheus-client")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(Misconfigured, match=f"127.0.0.1 port {port} cannot be listened at"):
            make_meters(settings(tmp_path, f"[metrics]\nport = {port}\n"))


@pytest.mark.parametrize("host", ["example.org", "localhost; rm", ""])
def test_the_address_is_an_address(tmp_path: Path, host: str) -> None:
    with pytest.raises(Misconfigured, match=r"metrics\.host"):
        settings(tmp_path, f'[metrics]\nport = 9464\nhost = "{host}"\n')
