"""What `evalstopd check` says of clocks, of daemons and of the store's place."""

import importlib
import os
import pwd
import re
import socket
import sys
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path

import pytest
from pydantic import SecretStr

from evalstopd.adapters.slurm.clock import controllers_clock_s
from evalstopd.adapters.slurm.run import Answer
from evalstopd.checks import probe
from evalstopd.core.model import Mode, Rung
from evalstopd.errors import Unavailable
from evalstopd.ports import Pulse
from evalstopd.settings import Settings, load_settings, settings_source
from evalstopd.skew import agreeing
from evalstopd.store import migrate
from evalstopd.store.sql import SqlStore
from evalstopd.wiring.checks.every import make_checks
from evalstopd.wiring.checks.slurm import rights_of
from evalstopd.wiring.host import make_clock
from tests.adapters.mlflow.standin import Asked, Reply, Standin, raw
from tests.adapters.slurm.fake_slurm import FakeSlurm, failed

CONFIG = "Configuration data as of 1796002372\nAccountingStorageBackupHost = (null)\n"


def said(theirs_s: float, asked_s: float = 1000.0, heard_s: float = 1002.0) -> str:
    times = iter((asked_s, heard_s))
    return agreeing("MLflow", lambda: theirs_s, lambda: next(times))


@pytest.mark.parametrize("theirs_s", [994.0, 999.0, 1000.0, 1001.5, 1002.0, 1007.0])
def test_a_clock_within_five_seconds_agrees_whenever_it_was_read(theirs_s: float) -> None:
    """The answer may be from any moment between asking and hearing, and a second is cut off."""
    assert said(theirs_s).startswith("MLflow agrees")


@pytest.mark.parametrize(("theirs_s", "words"), [(993.9, "behind ours"), (1007.1, "ahead of ours"), (0.0, "999 s")])
def test_a_clock_beyond_that_is_named(theirs_s: float, words: str) -> None:
    with pytest.raises(Unavailable, match=words):
        said(theirs_s)


def test_slurmctld_dates_its_configuration() -> None:
    assert controllers_clock_s(FakeSlurm(answers={"scontrol": Answer(0, CONFIG, "")})) == 1796002372.0


@pytest.mark.parametrize(
    "answer", [Answer(0, "ClusterName = c\n", ""), failed(1, "Unable to contact slurm controller"), Unavailable("late")]
)
def test_a_controller_that_does_not_say_is_unavailable(answer: Answer | Exception) -> None:
    with pytest.raises(Unavailable):
        controllers_clock_s(FakeSlurm(answers={"scontrol": answer}))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    url = f"sqlite:///{tmp_path}/store.db"
    migrate.upgrade(url)
    path = tmp_path / "evalstopd.toml"
    path.write_text(
        f'[store]\nurl = "{url}"\n[mlflow]\ntracking_uri = "http://127.0.0.1:9"\n[slurm]\npath = "{tmp_path}"\n'
    )
    return load_settings(path, {})


def answer_of(settings: Settings, what: str) -> tuple[bool, str]:
    found = [probe() for probe in make_checks(settings)]
    return next((each.good, each.text) for each in found if each.what == what)


def dated(header: str) -> Standin:
    def script(asked: Asked) -> Reply:
        return raw(b"{}", 200, *([f"Date: {header}"] if header else []))

    return Standin(script)


@pytest.mark.parametrize(
    ("header", "good", "words"),
    [
        ("Thu, 01 Jan 2015 00:00:00 GMT", False, "behind ours: keep both by NTP"),
        ("Thu, 01 Jan 2099 00:00:00 GMT", False, "ahead of ours"),
        ("", False, "not dated"),
        ("yesterday", False, "not dated"),
    ],
)
def test_mlflows_clock_is_taken_from_its_answers(settings: Settings, header: str, good: bool, words: str) -> None:
    with dated(header) as server:
        mlflow = settings.mlflow.model_copy(update={"tracking_uri": server.uri})
        found = answer_of(settings.model_copy(update={"mlflow": mlflow}), "clock of mlflow")

    assert found[0] is good
    assert words in found[1]


def test_a_tracker_with_our_time_agrees(settings: Settings) -> None:
    with dated(formatdate(make_clock().now_s(), usegmt=True)) as server:
        mlflow = settings.mlflow.model_copy(update={"tracking_uri": server.uri})
        good, text = answer_of(settings.model_copy(update={"mlflow": mlflow}), "clock of mlflow")

    assert good, text


def test_a_slurm_that_is_not_there_is_bad_news(settings: Settings) -> None:
    good, text = answer_of(settings, "clock of slurmctld")

    assert not good
    assert "scontrol" in text


def test_before_the_first_start_there_is_no_daemon_and_that_is_fine(settings: Settings) -> None:
    assert answer_of(settings, "daemon") == (True, "no daemon has worked on this store yet")


def test_a_daemon_that_is_well_is_told_of_and_one_that_is_not_is_bad_news(settings: Settings) -> None:
    store, now_s = SqlStore(settings.store.url), make_clock().now_s()
    store.note_pulse(Pulse("evalstopd@a", 7, now_s, now_s, leads=True, version="1", digest="d", summary="3 jobs"))
    assert answer_of(settings, "daemon")[0]
    store.note_pulse(Pulse("evalstopd@a", 7, now_s, now_s - 999, leads=True, version="1", digest="d", summary="alas"))
    good, text = answer_of(settings, "daemon")

    assert not good
    assert re.search(r"last good pass (999|1\d\d\d) s ago", text)
    assert "alas" in text


def test_a_cluster_that_is_led_under_another_leases_name_is_bad_news(settings: Settings) -> None:
    """Who starts a daemon by these settings would see it do nothing."""
    program(settings, "squeue", ":")
    program(settings, "scontrol", "echo 'ClusterName             = c'")
    store = SqlStore(settings.store.url)
    store.claim("other", store.take("other", "b", 600).epoch, "c")
    store.claim("third", store.take("third", "b", 600).epoch, "elsewhere")
    good, text = answer_of(settings, "daemon")

    assert not good
    assert "the lease 'other' leads the cluster 'c', not 'evalstopd', which these settings name" in text
    assert "third" not in text
    assert answer_of(put(settings, "store", lease="other"), "daemon")[0]
    store.close()


def test_a_lease_that_leads_another_cluster_is_bad_news_while_it_lasts(settings: Settings) -> None:
    """Who starts a daemon by these settings would see it stand by for a leader that never looks at its jobs."""
    program(settings, "squeue", ":")
    program(settings, "scontrol", "echo 'ClusterName             = evt4b'")
    store = SqlStore(settings.store.url)
    store.claim("evalstopd", store.take("evalstopd", "a", 600).epoch, "evt4")
    good, text = answer_of(settings, "daemon")
    assert not good
    assert text.startswith("nobody watches the cluster 'evt4b' under the lease 'evalstopd', which leads")
    assert "give each cluster a store.lease of its own" in text
    store.resign("evalstopd", "a")
    assert answer_of(settings, "daemon")[0]
    store.close()


@pytest.mark.parametrize(
    ("url", "tick_s", "lease_s", "limit_s", "words"),
    [
        ("postgresql:///e", 30.0, 15.0, 5.0, "after 20 s at most, four thirds of store.lease_s: within two passes"),
        ("postgresql:///e", 10.0, 15.0, 5.0, "after 20 s at most, four thirds of store.lease_s: within two passes"),
        (
            "postgresql:///e", 9.0, 15.0, 1.0,
            "more than two passes (daemon.tick_s is 9); a store.lease_s of 13.5 at most would do",
        ),
        (
            "postgresql:///e", 5.0, 15.0, 5.0,
            "a store.lease_s of 7.5 at most would do, with a slurm.time_limit_s of 1.75 at most",
        ),
        ("postgresql:///e", 2.0, 15.0, 5.0, "more than two passes (daemon.tick_s is 2); no lease is so short"),
        ("sqlite:////e.db", 1.0, 15.0, 5.0, "an SQLite store serves one daemon: none takes over"),
    ],
)  # fmt: skip
def test_how_long_a_take_over_lasts_is_said_and_where_that_is_more_than_two_passes(
    settings: Settings, url: str, tick_s: float, lease_s: float, limit_s: float, words: str
) -> None:
    given = put(put(settings, "store", url=url, lease_s=lease_s), "daemon", tick_s=tick_s)
    given = put(given, "slurm", time_limit_s=limit_s)
    good, text = answer_of(given, "take-over")
    assert good
    assert text.endswith(words)


def test_a_second_daemon_that_is_late_is_bad_news_too_unless_it_was_told_to_end(settings: Settings) -> None:
    store, now_s = SqlStore(settings.store.url), make_clock().now_s()
    late = Pulse("evalstopd@b", 8, now_s - 999, now_s - 999, leads=False, version="1", digest="d", summary="")
    store.note_pulse(replace(late, name="evalstopd@a", at_s=now_s, good_s=now_s, leads=True))
    store.note_pulse(late)
    good, text = answer_of(settings, "daemon")
    assert not good
    assert "evalstopd@b" in text
    store.note_pulse(replace(late, ended=True))
    assert answer_of(settings, "daemon")[0]


def put(settings: Settings, part: str, **values: object) -> Settings:
    return settings.model_copy(update={part: getattr(settings, part).model_copy(update=values)})


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("mysql://h/mlflow", "mlflow.database: must be"),
        ("none.db", "MLflow's database"),
        ("text.db", "MLflow's database"),
    ],
)
def test_a_wrong_database_of_mlflows_is_bad_news(settings: Settings, tmp_path: Path, address: str, words: str) -> None:
    (tmp_path / "text.db").write_text("no database at all, but long enough to be taken for one" * 20)
    url = address if "//" in address else f"sqlite:///{tmp_path}/{address}"
    good, text = answer_of(put(settings, "mlflow", database=SecretStr(url)), "mlflow database")

    assert not good
    assert words in text


def test_metrics_without_their_library_are_bad_news(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = put(settings, "metrics", port=9464)
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    good, text = answer_of(asked, "metrics")

    assert not good
    assert "evalstopd[metrics]" in text


def test_an_address_that_a_daemon_could_not_listen_at_is_bad_news(settings: Settings) -> None:
    pytest.importorskip("prometheus_client", reason="METRICS TESTS SKIPPED: no prometheus-client")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        taken.listen()
        taken.settimeout(0)
        good, text = answer_of(put(settings, "metrics", port=port), "metrics")
        elsewhere = answer_of(put(settings, "metrics", port=port, host="192.0.2.1"), "metrics")

    assert (good, text) == (False, f"metrics.port: 127.0.0.1 port {port} cannot be listened at: Address already in use")
    assert not elsewhere[0]
    assert "192.0.2.1" in elsewhere[1]
    assert answer_of(put(settings, "metrics", port=port), "metrics")[0], "a port that is free again"


def test_the_daemon_that_serves_figures_may_have_their_address(settings: Settings) -> None:
    pytest.importorskip("prometheus_client", reason="METRICS TESTS SKIPPED: no prometheus-client")
    prometheus = importlib.import_module("evalstopd.meters.prometheus")
    port = prometheus.PrometheusMeters(make_clock().now_s).serve("127.0.0.1", 0)
    good, text = answer_of(put(settings, "metrics", port=port), "metrics")

    assert good
    assert text.endswith(f":{port}/metrics, where a daemon serves them now")


def test_a_kill_switch_that_nobody_could_set_is_bad_news(settings: Settings, tmp_path: Path) -> None:
    assert answer_of(put(settings, "daemon", kill_switch=tmp_path / "STOP"), "kill switch") == (True, "not set")
    (tmp_path / "file").touch()
    for folder in ("nowhere", "file"):
        found = answer_of(put(settings, "daemon", kill_switch=tmp_path / folder / "STOP"), "kill switch")
        assert found[0] is False
    nowhere = put(settings, "daemon", kill_switch=Path("/nowhere/STOP"))
    assert answer_of(nowhere, "kill switch") == (
        False,
        "it cannot be set: the folder '/nowhere' does not exist (daemon.kill_switch)",
    )


def test_what_is_off_is_said_in_a_line(settings: Settings) -> None:
    for what in ("metrics", "promotion", "mlflow database"):
        good, text = answer_of(settings, what)
        assert good
        assert text


def test_the_workspace_is_named_in_which_the_tracker_answers(settings: Settings) -> None:
    with Standin(lambda asked: raw(b"{}")) as server:
        tracker = put(settings, "mlflow", tracking_uri=server.uri)
        assert "workspace" not in answer_of(tracker, "mlflow")[1]
        assert answer_of(put(tracker, "mlflow", workspace="team-a"), "mlflow")[1].endswith(
            "; in the workspace 'team-a'"
        )


def test_whose_checkpoints_can_be_copied_in_is_said(settings: Settings) -> None:
    asked = put(settings, "promotion", registry=True)
    assert "copied" not in answer_of(asked, "promotion")[1]
    account = pwd.getpwuid(os.getuid()).pw_name
    assert (
        f"only those of jobs of {account} can be copied in"
        in answer_of(put(asked, "promotion", copy_mb=5), "promotion")[1]
    )


def test_what_is_missing_is_told_at_length_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    bare = put(put(load_settings(None, {}), "mlflow", tracking_uri=""), "store", url=f"sqlite:///{tmp_path}/no/s.db")
    texts = [probe().text for probe in make_checks(put(bare, "slurm", path=str(tmp_path)))]

    assert sum("MLFLOW_TRACKING_URI" in each for each in texts) == 1
    assert texts.count("needs the tracker's address and login: see mlflow") == 3
    assert sum("store.url: folder" in each for each in texts) == 1
    assert texts.count("needs the store") == 2


def test_the_settings_file_is_named_or_that_there_is_none(tmp_path: Path) -> None:
    path = tmp_path / "evalstopd.toml"
    assert settings_source(path, {}).startswith(f"there is no {path}")
    path.touch()
    assert settings_source(None, {"EVALSTOPD_CONFIG": str(path)}) == f"read from {path}"


def program(settings: Settings, name: str, text: str) -> None:
    path = Path(settings.slurm.path) / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


NOBODY = pwd.getpwnam("nobody").pw_uid


@pytest.mark.parametrize("rung", [Rung.OBSERVE, Rung.WARN, Rung.ENFORCE])
def test_an_account_that_may_end_no_job_is_bad_news_on_enforce_and_a_note_below(settings: Settings, rung: Rung) -> None:
    asked = settings.model_copy(update={"rules": settings.rules.model_copy(update={"rung": rung})})
    program(settings, "sacctmgr", "echo None")
    program(settings, "scontrol", "echo 'SlurmUser               = slurm(1)'")
    found = probe("slurm rights", lambda: rights_of(NOBODY, asked))()
    good, text = found.good, found.text

    assert good is (rung < Rung.ENFORCE)
    assert text.startswith("Slurm does not call this account Operator: it may not end the jobs of others (sacctmgr")
    assert text.endswith("adminlevel=Operator)" if rung is Rung.ENFORCE else f"on the {rung.word} rung it need not")


@pytest.mark.parametrize(("level", "user"), [("Operator", 1), ("None", NOBODY)])
def test_an_operator_and_slurms_own_user_may_end_jobs(settings: Settings, level: str, user: int) -> None:
    asked = settings.model_copy(update={"rules": settings.rules.model_copy(update={"rung": Rung.ENFORCE})})
    program(settings, "sacctmgr", f"echo {level}")
    program(settings, "scontrol", f"echo 'SlurmUser               = who({user})'")

    assert rights_of(NOBODY, asked) == "this account may end the jobs of others"


def test_what_check_asks_of_rights_is_about_its_own_account(settings: Settings) -> None:
    good, text = answer_of(settings, "slurm rights")

    assert good
    assert text.startswith("this account may" if os.getuid() == 0 else "Slurm does not call this account Operator")


def test_a_governed_partition_that_slurm_lacks_is_bad_news(settings: Settings) -> None:
    assert answer_of(settings, "partitions") == (True, "all partitions are governed")
    program(settings, "sinfo", "echo gpu; echo long")
    governed = put(settings, "rules", partitions=("gpu",))
    assert answer_of(governed, "partitions") == (True, "governed: gpu")
    found = answer_of(put(governed, "priorities", partitions=("gpu", "lnog")), "partitions")
    assert found == (False, "Slurm has no partition lnog (priorities.partitions)")
    program(settings, "sinfo", "exit 1")
    assert answer_of(governed, "partitions")[0] is False


def test_a_metric_whose_direction_the_site_does_not_say_is_bad_news(settings: Settings) -> None:
    assert answer_of(settings, "direction") == (True, "the site judges by no metric of its own")
    named = put(settings, "rules", metric="eval/fid")
    good, words = answer_of(named, "direction")
    assert not good
    assert "nobody says which way is better for 'eval/fid'" in words
    assert answer_of(put(named, "rules", mode=Mode.MIN), "direction") == (True, "min is better")
    assert answer_of(put(named, "rules", modes={"*/fid": Mode.MIN}), "direction") == (True, "min is better")


def test_an_exempt_account_that_slurm_lacks_is_bad_news(settings: Settings) -> None:
    assert answer_of(settings, "accounts") == (True, "no account is exempt")
    given = put(settings, "rules", exempt_accounts=("teaching", "lab"))
    good, text = answer_of(given, "accounts")
    assert good, "a cluster without accounting knows every account"
    assert text.startswith("exempt: lab, teaching; whether Slurm has them cannot be told: sacctmgr was not found")
    program(settings, "sacctmgr", "echo lab; echo root; echo teaching")
    assert answer_of(given, "accounts") == (True, "exempt: lab, teaching")
    program(settings, "sacctmgr", "echo lab; echo root")
    found = answer_of(given, "accounts")
    assert found == (False, "Slurm has no account teaching (rules.exempt_accounts): nobody is exempt by it")
    program(settings, "sacctmgr", "echo lab")
    assert answer_of(given, "accounts")[1].endswith("cannot be told: sacctmgr does not show this account all accounts")


@pytest.mark.parametrize(
    ("metric", "mode", "why"),
    [
        ("eval_loss", Mode.MAX, "max is taken for better, and eval_loss speaks for min"),
        ("train_loss", Mode.MIN, "this is measured in training, not held out"),
        ("eval_reward", Mode.MAX, "eval_reward is the weighted training reward"),
    ],
)
def test_a_metric_by_which_every_job_is_only_observed_is_bad_news(
    settings: Settings, metric: str, mode: Mode, why: str
) -> None:
    good, words = answer_of(put(settings, "rules", metric=metric, mode=mode), "direction")

    assert not good
    assert words.startswith(f"jobs that {metric!r} judges are only observed: {why}")
    assert answer_of(put(settings, "rules", metric="eval_loss", mode=Mode.MIN), "direction") == (True, "min is better")


def test_patterns_to_choose_metrics_by_need_a_direction_too(settings: Settings) -> None:
    chosen = put(settings, "rules", metrics=("eval_*", "val_acc"))
    good, words = answer_of(chosen, "direction")
    assert not good
    assert words.startswith("nobody says which way is better for what rules.metrics choose ('eval_*', 'val_acc')")
    assert answer_of(put(chosen, "rules", modes={"*": Mode.MAX}), "direction") == (
        True,
        "for metrics that are chosen rules.modes says it",
    )
    good, words = answer_of(put(chosen, "rules", modes={"*_acc": Mode.MAX}), "direction")
    assert good
    assert words.endswith("rules.modes says it; of what 'eval_*' choose, where one of its patterns fits")


def test_where_slurms_programs_are_not_it_is_the_path_that_is_told(settings: Settings) -> None:
    words = f"squeue was not found at {settings.slurm.path} (slurm.path)"
    assert answer_of(settings, "slurm") == (False, words)
    assert answer_of(put(settings, "priorities", policy="fifo"), "priorities") == (False, words)
    yielding = put(put(settings, "preempt", policy="las"), "rules", rung=Rung.WARN)
    assert answer_of(yielding, "preemption") == (False, words)
    assert answer_of(settings, "priorities") == (True, "the order of waiting jobs is Slurm's alone")


def test_a_configuration_of_slurms_that_is_not_there_is_named_before_any_command_hangs_on_it(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("squeue", "scontrol", "sinfo", "sacctmgr"):
        program(settings, name, f"touch {tmp_path}/asked; exit 1")
    given = put(settings, "rules", partitions=("gpu",), exempt_accounts=("lab",))
    words = "Slurm's configuration '/nowhere/slurm.conf' is not there"
    by_file = [probe() for probe in make_checks(put(given, "slurm", conf="/nowhere/slurm.conf"))]
    monkeypatch.setenv("SLURM_CONF", "/nowhere/slurm.conf")
    by_variable = answer_of(given, "slurm")

    said = {each.what: each.text for each in by_file if "/nowhere" in each.text}
    assert said.keys() == {"slurm", "slurm rights", "clock of slurmctld", "partitions", "accounts"}
    assert said["slurm"] == f"{words} (slurm.conf)"
    assert by_variable == (False, f"{words} (SLURM_CONF)")
    assert not (tmp_path / "asked").exists()
