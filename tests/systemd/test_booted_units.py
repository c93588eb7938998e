"""The units, booted: what their sandboxes forbid is found here, not at a site; everything as the README installs it."""

import json
import urllib.request
from collections.abc import Iterator

import pytest
from demo.rig import users

from tests.e2e.site import FALL
from tests.keeper.world import give, user, write_checkpoint
from tests.systemd.box import NoBoxError
from tests.systemd.service import Installed, installed

pytestmark = [pytest.mark.slurm, pytest.mark.mlflow, pytest.mark.root]
ASK = """
import json, socket, sys
for request in json.loads(sys.argv[1]):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
        peer.settimeout(60)
        peer.connect("/run/evalstopd/keeper.sock")
        peer.send(json.dumps(request).encode())
        print(peer.recv(70_000).decode())
"""


@pytest.fixture(scope="module")
def site(slurm_users: None) -> Iterator[Installed]:
    """One installation for all tests here: each leaves it running."""
    try:
        with installed() as made:
            yield made
    except NoBoxError as error:
        pytest.skip(f"UNITS NOT BOOTED: {error}")


def test_the_steps_of_the_readme_leave_a_service_that_is_well(site: Installed) -> None:
    site.box.wait(lambda: site.passes() > 1, "passes in the journal")

    assert "BAD" not in site.box.done("evalstopd check", user="evalstopd")
    assert site.show("ActiveState", "NRestarts", "NotifyAccess") == ["active", "0", "main"]
    assert site.box.done("systemctl --failed --quiet --no-legend") == ""
    with urllib.request.urlopen(f"http://127.0.0.1:{site.metrics_port}/metrics", timeout=60) as answer:
        assert b"evalstopd_last_good_tick_timestamp_seconds" in answer.read()


def test_the_units_stop_a_job_and_keep_its_best(site: Installed) -> None:
    """Slurm, tracker, store and keeper are all reached from within the sandboxes; the journal has it by job."""
    job = site.train(FALL)

    site.box.wait(lambda: "was stopped at step 50" in site.told(job), "the stop, in the journal")

    assert site.cluster.sacct("-X", "-j", job, "-o", "State").startswith("CANCELLED")
    (best,) = site.cluster.work(users.ALICE).glob(f".evalstop/*-{job}-*/best")
    assert json.loads((best / "trainer_state.json").read_text())["global_step"] == 30
    assert f"job {job} was stopped" in site.box.log("EVALSTOPD_USER=" + users.ALICE)


def test_the_keepers_sandbox_lets_it_do_all_it_is_for(site: Installed) -> None:
    folder = site.folder / "saved"
    saved = folder / "run" / "checkpoint-200"
    write_checkpoint(saved)
    logged = {"global_step": 200, "log_history": [{"eval/reward": 0.5, "step": 200}]}
    (saved / "trainer_state.json").write_text(json.dumps(logged))
    alice = user(users.ALICE)
    give(folder, alice)
    place = {"uid": alice.pw_uid, "output_dir": str(folder / "run"), "pin": "c-7-100", "step": 200}
    read = {"since_s": 0, "metric": "eval/reward", "score": 0.5, "later": 0}
    asked = [
        *({"verb": verb, **place, **read} for verb in ("log", "pin", "repin")),
        *({"verb": verb, **place} for verb in ("verify", "publish", "drop")),
    ]  # fmt: skip

    said = site.box.done(f"/usr/bin/python3 -c '{ASK}' '{json.dumps(asked)}'", user="evalstopd")

    answers = [json.loads(line) for line in said.splitlines()]
    assert [each["ok"] for each in answers] == [True] * 6, said
    assert [each["files"] for each in answers[1:]] == [41] * 5
    assert not (folder / ".evalstop" / "c-7-100" / "step-200").exists()


def test_settings_that_are_wrong_are_refused_at_a_reload_and_the_service_goes_on(site: Installed) -> None:
    config = "/etc/evalstopd/evalstopd.toml"
    site.box.done(f"cp {config} /root/good.toml; echo 'bogus = [' >> {config}; systemctl reload evalstopd")
    site.box.wait(lambda: "the settings stay as they were" in site.box.log("--unit=evalstopd"), "the refusal")
    before = site.passes()
    site.box.wait(lambda: site.passes() > before, "another pass")

    site.box.done(f"cat /root/good.toml > {config}; systemctl reload evalstopd")
    site.box.wait(lambda: "settings reloaded" in site.box.log("--unit=evalstopd"), "the reload")
    assert site.show("ActiveState", "NRestarts") == ["active", "0"]


def test_a_secret_of_roots_alone_reaches_the_daemon_and_a_command_as_a_credential(site: Installed) -> None:
    """The store's address, of another store, so that it shows which one was opened."""
    secret, unit = "/etc/evalstopd/store.url", "/etc/systemd/system/evalstopd.service.d/secret.conf"
    url = "sqlite:////var/lib/evalstopd/other.db"
    site.box.done(f"umask 377; echo {url} > {secret}")
    site.box.done(f"EVALSTOPD_STORE__URL={url} evalstopd db upgrade", user="evalstopd")
    site.box.done(f"install -d $(dirname {unit}); printf '[Service]\\nLoadCredential=store.url:{secret}\\n' > {unit}")
    try:
        site.box.done("systemctl daemon-reload; systemctl restart evalstopd")
        before = site.passes()
        site.box.wait(lambda: site.passes() > before, "a pass on the other store")
        checked = site.box.done(
            f"systemd-run --quiet --pipe --wait --uid=evalstopd -p LoadCredential=store.url:{secret} evalstopd check"
        )
        assert "leads: last good pass" in checked
    finally:
        site.box.done(f"rm -f {unit} {secret}; systemctl daemon-reload; systemctl restart evalstopd")


def test_a_daemon_that_is_killed_is_started_anew_and_one_that_is_stopped_ends_well(site: Installed) -> None:
    (first,) = site.show("MainPID")
    before = site.passes()
    site.box.done(f"kill -KILL {first}")
    site.box.wait(lambda: site.passes() > before and site.show("MainPID") != [first], "passes of another process")

    site.box.done("systemctl stop evalstopd")
    assert site.show("Result", "ExecMainStatus") == ["success", "0"]
    site.box.done("systemctl start evalstopd")
