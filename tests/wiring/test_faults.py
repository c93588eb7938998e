"""Wrong settings: all of a file are told at once, each in one plain line, whatever was written there."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstopd.errors import WrongSettings
from evalstopd.settings import PATHS, Settings, known_keys, load_settings

HOSTILE = "a\nb\x1b[31m\u202e=cmd|\r<script>"
# Words that pydantic, and nobody else, would put there.
FOREIGN = re.compile(
    r"Input should|[Ff]ield required|validation error|Value error|pydantic|type=|errors\.|unable to", re.IGNORECASE
)
KEYS = sorted(key for key in known_keys(Settings) if "." in key)


def told(tmp_path: Path, text: str) -> list[str]:
    """Return what is said of a file, without its name."""
    path = tmp_path / "evalstopd.toml"
    path.write_text(text)
    with pytest.raises(WrongSettings) as caught:
        load_settings(path, {})
    for line in caught.value.faults:
        assert line.isprintable()
        assert not FOREIGN.search(line), line
    return [line.removeprefix(f"{path}: ") for line in caught.value.faults]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[rulez]\nx = 1", "unknown key rulez; did you mean rules?"),
        ("[caps]\nstop = 1", "unknown key caps.stop; did you mean caps.stops?"),
        ("mlflow = 3", "mlflow: a section of its own is needed, not 3"),
        ('[rules]\nrung = "sometimes"', "rules.rung: one of off, observe, warn, enforce is needed, not 'sometimes'"),
        ('[rules]\nmode = "up"', "rules.mode: one of max, min is needed, not 'up'"),
        ("[rules]\nitems = 3.5", "rules.items: a whole number from 0 to 1000000000000 is needed, not 3.5"),
        ("[rules]\ncandidates = true", "rules.candidates: a number is needed, not true"),
        ("[daemon]\ntick_s = 301", "daemon.tick_s: a number from 0.2 to 300 is needed, not 301"),
        (
            "[slurm]\nmin_call_interval_s = 900",
            "slurm.min_call_interval_s: a number from 0 to 300 is needed, not 900",
        ),
        ("[daemon]\ntick_s = nan", "daemon.tick_s: a number from 0.2 to 300 is needed, not nan"),
        ("[enforce]\nnotice_s = inf", "enforce.notice_s: a number of at least 0 is needed, not inf"),
        ("[caps]\ngpu_share = 2", "caps.gpu_share: a number above 0 and at most 1 is needed, not 2"),
        ('[caps]\nstops = "many"', "caps.stops: a whole number of at least 1 is needed, not 'many'"),
        ("[rules]\nmetric = 5", "rules.metric: a text in quotes is needed, not 5"),
        ('[rules]\nmetrics = "acc"', """rules.metrics: a list, as in ["a", "b"], is needed, not 'acc'"""),
        ('[rules]\npartitions = ["a", 2]', "rules.partitions, entry 2: a text in quotes is needed, not 2"),
        ("[rules]\nmodes = 1", 'rules.modes: a table, as in { "eval/loss" = "min" }, is needed, not 1'),
        ('[rules.modes]\n"e/l" = "up"', "rules.modes, 'e/l': one of max, min is needed, not 'up'"),
        ("[promotion]\nregistry = 2", "promotion.registry: true or false is needed, not 2"),
        ("[daemon]\nkill_switch = 1", "daemon.kill_switch: a path in quotes is needed, not 1"),
        ('[daemon]\nlog_level = "LOUD"', "daemon.log_level: one of DEBUG, INFO, WARNING, ERROR is needed, not 'LOUD'"),
        ('[store]\nlease = ""', "store.lease: a text in quotes of 1 to 200 characters is needed, not ''"),
        ('[metrics]\nhost = "h"', "metrics.host: a numeric address in quotes is needed, not 'h'"),
        (
            '[notify]\nsmtp_admin = "a@b\\nBcc: c"',
            r"notify.smtp_admin: one plain mail address, as in evalstopd@site.example, is needed, not 'a@b\nBcc: c'",
        ),
        (
            "[enforce]\nactions = 1",
            "enforce.actions: a list of tables, each begun by its name in [[ ]], is needed, not 1",
        ),
        (
            '[[enforce.actions]]\nstop_action = "cancel"\n[[enforce.actions]]\npartition = "x"',
            "enforce.actions, entry 2, stop_action: one of requeue-hold, requeue-hold-or-cancel, cancel is needed",
        ),
        (
            '[[enforce.actions]]\nstop_action = "cancel"\nrules = "x"',
            "unknown key enforce.actions, entry 1, rules; did you mean rule?",
        ),
        (
            '[mlflow]\nusername = "me"',
            "mlflow.username: goes together with mlflow.password: there is a user name and no password",
        ),
        (
            '[mlflow]\npassword = "s3cret"',
            "mlflow.username: goes together with mlflow.password: there is a password and no user name",
        ),
        ('[promotion]\nmodel = "x"', "promotion.model: a model's name needs {job}, {uid} or {account}, not 'x'"),
    ],
)
def test_each_kind_of_fault_says_where_what_was_given_and_what_is_needed(tmp_path: Path, text: str, line: str) -> None:
    assert told(tmp_path, text) == [line]


@pytest.mark.parametrize("key", PATHS)
def test_a_relative_path_is_refused(tmp_path: Path, key: str) -> None:
    part, _, name = key.partition(".")
    where = "a relative one hangs on the folder in which a command is started"
    for path in ("x", "a/x", "~/x"):
        user = 'smtp_user = "d"\n' if name == "smtp_password_file" else ""
        lines = told(tmp_path, f'[{part}]\n{user}{name} = "{path}"')
        assert lines == [f"{key}: an absolute path is needed, not '{path}': {where}"]


def test_every_setting_that_names_a_file_must_be_absolute() -> None:
    """A setting that is added is either no path or one of those that are checked."""
    named = {key for key in KEYS if re.search("file|cert|socket|switch|conf|key", key.partition(".")[2])}
    assert named == set(PATHS)


@pytest.mark.parametrize("path", ["bin", "/usr/bin:", "/usr/bin:.:/bin", ""])
def test_a_relative_folder_of_commands_is_refused(tmp_path: Path, path: str) -> None:
    assert told(tmp_path, f'[slurm]\npath = "{path}"')[0].startswith("slurm.path: absolute paths are needed")


@pytest.mark.parametrize(
    "url", ["sqlite:///store.db", "sqlite+pysqlite:///a/store.db", "sqlite:///./x", "sqlite:///~/x"]
)
def test_a_relative_store_is_refused_with_the_form_that_is_taken(tmp_path: Path, url: str) -> None:
    (line,) = told(tmp_path, f'[store]\nurl = "{url}"')
    assert line.startswith("store.url: SQLite needs an absolute path, with four slashes, as in sqlite:////var/lib/")


ALL_WRONG = """
[notify]
kinds = ["smtp", "command"]
smtp_user = "d"
smtp_security = "none"
[rules]
rule = "k-decline"
rung = "sometimes"
[mlflow]
server = "shut"
[caps]
stop = 3
stops = 0
[priorities]
policy = "shortest"
[preempt]
policy = "fifo"
[binding]
tags = "our proxy says so"
[[enforce.actions]]
stop_action = "cancel"
rule = "k-decline"
"""


def test_all_faults_of_a_file_are_told_at_once_in_the_sections_order(tmp_path: Path) -> None:
    """What hangs on a key that is wrong itself waits: whether tags count cannot be said before the server's class."""
    lines = told(tmp_path, ALL_WRONG)

    assert [re.sub("^unknown key ", "", line).partition(":")[0].partition(";")[0] for line in lines] == [
        "mlflow.server", "rules.rung", "rules.rule", "caps.stops", "caps.stop", "enforce.actions", "notify.command",
        "notify.kinds", "notify.smtp_user", "notify.smtp_security", "preempt.policy", "priorities.policy",
    ]  # fmt: skip
    repaired = told(tmp_path, ALL_WRONG.replace("shut", "open"))
    assert 'binding.tags: tags prove nothing unless mlflow.server is "authenticated"' in repaired


def test_what_was_written_does_nothing_and_is_short(tmp_path: Path) -> None:
    keys = json.dumps(HOSTILE)
    long = json.dumps("x" * 10_000)
    lines = told(tmp_path, f"[{keys}]\n[rules]\nrung = {keys}\n{keys} = 1\nmode = {long}\n{long} = 1\n")

    assert len(lines) == 5
    assert max(map(len, lines)) < 300
    (rule,) = told(tmp_path, f"[rules]\nrule = {long}\n")
    assert len(rule) < 1000


def test_many_faults_are_counted(tmp_path: Path) -> None:
    lines = told(tmp_path, "[caps]\n" + "".join(f"x{number} = 1\n" for number in range(60)))

    assert len(lines) == 51
    assert lines[-1] == "10 more settings are wrong"


@pytest.mark.parametrize("key", ["password", "token", "proxy", "database"])
def test_what_was_given_for_a_secret_is_never_shown(tmp_path: Path, key: str) -> None:
    assert told(tmp_path, f"[mlflow]\n{key} = 12345678") == [f"mlflow.{key}: a text in quotes is needed"]


def test_a_password_in_an_address_is_not_shown(tmp_path: Path) -> None:
    (line,) = told(tmp_path, '[store]\nlease_s = "postgresql://u:s3cret@h/db"')

    assert "s3cret" not in line


VALUES = st.recursive(
    st.booleans() | st.integers(-3, 10**13) | st.floats() | st.text(max_size=9) | st.just(HOSTILE),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)


@given(key=st.sampled_from(KEYS), value=VALUES)
def test_whatever_a_key_is_given_it_is_taken_or_named_in_plain_lines(
    tmp_path_factory: pytest.TempPathFactory, key: str, value: object
) -> None:
    """No value of any key breaks the telling, or lets a validator's own words through."""
    part, _, name = key.partition(".")
    text = f"[{part}]\n{name} = {_toml(value)}\n"
    assert tomllib.loads(text) is not None
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_text(text, encoding="utf-8")
    try:
        load_settings(path, {})
    except WrongSettings as error:
        for line in error.faults:
            assert line.startswith((f"{path}: {part}.", f"{path}: unknown key {part}."))
            assert line.isprintable()
            assert not FOREIGN.search(line.replace(_shown(value), "")), line


def _shown(value: object) -> str:
    return ascii(value)[:70]


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_toml(key)} = {_toml(each)}' for key, each in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return repr(value)


def test_a_wrong_variable_is_named_and_goes_before_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "evalstopd.toml"
    path.write_text("[caps]\nstops = 3\ngpu_share = 2\n")
    variables = {"EVALSTOPD_CAPS__STOPS": "0", "EVALSTOPD_CAPS__STOP": "1", "EVALSTOPD_RULES__ITEMS": HOSTILE}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(WrongSettings) as caught:
        load_settings(path)

    assert caught.value.faults == (
        "unknown variable EVALSTOPD_CAPS__STOP; did you mean EVALSTOPD_CAPS__STOPS?",
        (
            "variable EVALSTOPD_RULES__ITEMS: rules.items: a whole number from 0 to 1000000000000 is needed, "
            f"not {HOSTILE!a}"
        ),
        "variable EVALSTOPD_CAPS__STOPS: caps.stops: a whole number of at least 1 is needed, not '0'",
        f"{path}: caps.gpu_share: a number above 0 and at most 1 is needed, not 2",
    )


@pytest.mark.parametrize("name", ["EVALSTOPD_RULES__METRICS", "EVALSTOPD_RULES"])
def test_a_variable_that_should_be_a_list_or_a_section_says_how_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path = tmp_path / "evalstopd.toml"
    path.write_text("[caps]\nstops = 0\n[rules]\nmetrics = 1\n")
    monkeypatch.setenv(name, "acc")
    with pytest.raises(WrongSettings) as caught:
        load_settings(path)

    assert caught.value.faults[0].startswith(f"variable {name}: rules")
    assert 'a list is written as ["a", "b"]' in caught.value.faults[0]
    assert "caps.stops" in caught.value.faults[1]
    assert len(caught.value.faults) == 2, "what the file says there does not count"
