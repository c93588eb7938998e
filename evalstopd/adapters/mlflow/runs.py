"""A run's facts, and the only two things ever written to a run: tags, and the status KILLED. Writes are read back."""

import re
from collections.abc import Mapping

from evalstopd.adapters.mlflow import fields
from evalstopd.adapters.mlflow.http import Asks, Http
from evalstopd.adapters.mlflow.problems import TooMuch, about_one, one_line
from evalstopd.core.binding import RunFacts, of_note
from evalstopd.errors import Rejected, Unavailable

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,255}", re.ASCII)
_MOST_PAIRS = 5_000
_LONGEST_VALUE = 65_536
_RUNNING, _KILLED = "RUNNING", "KILLED"

# What MLflow's REST documentation promises for every backend. 3.17 on SQL takes 8,000 characters and cuts the
# rest without a word.
TAG_BYTES = 5_000
_TAGS_A_CALL = 100
_CUT = "..."


def facts(http: Asks, run_id: str) -> RunFacts:
    """Return what MLflow says of a run. Raises Rejected (unknown run, no permission) or Unavailable.

    A value longer than 65,536 characters counts as not there; more than 5,000 tags or parameters are TooMuch, as is
    an answer longer than any that is read.
    """
    if not is_run_id(run_id):
        raise Rejected("unknown run: the id is not one that MLflow gives")
    with about_one("the run has too much beside its metrics"):
        answer = http.get("/runs/get", {"run_id": run_id})
    found = facts_of(answer.body.get("run"))
    if found.run_id != run_id:
        raise Unavailable("MLflow answered with another run than the one asked for")
    return found


def is_run_id(text: str) -> bool:
    """Tell whether MLflow could have given this id."""
    return _RUN_ID.fullmatch(text) is not None


def facts_of(answer: object) -> RunFacts:
    """Return the facts of a run as MLflow's JSON has them. Raises Unavailable or TooMuch."""
    run = fields.mapping(answer, "run")
    info, data = fields.mapping(run.get("info"), "run info"), fields.mapping(run.get("data", {}), "run data")
    tags = _pairs(data.get("tags"), "tags")
    params = _pairs(data.get("params"), "parameters")
    metrics = [fields.mapping(item, "metric") for item in fields.items(data.get("metrics"), "metrics")]
    made, used = (_models(run, *names) for names in (("outputs", "model_outputs"), ("inputs", "model_inputs")))
    return RunFacts(
        run_id=_required(info.get("run_id"), "run id"),
        status=_required(info.get("status"), "run status"),
        deleted=_required(info.get("lifecycle_stage"), "lifecycle stage") != "active",
        user=fields.text(info.get("user_id"), "user") or tags.get("mlflow.user", ""),
        maker=fields.text(info.get("user_id"), "user"),
        tags=tags,
        params=of_note(params),
        metrics=frozenset(_required(each.get("key"), "metric name") for each in metrics),
        experiment_id=fields.text(info.get("experiment_id"), "experiment id"),
        started_ms=fields.int64(info["start_time"], "start time") if info.get("start_time") is not None else None,
        models=made,
        labels=made + used,
    )


def _models(run: Mapping[str, object], side: str, kind: str) -> int:
    return len(fields.items(fields.mapping(run.get(side, {}), f"run {side}").get(kind), side))


def set_tags(http: Http, run_id: str, tags: Mapping[str, str]) -> None:
    """Set tags on a run and read them back; a value beyond 5,000 bytes is cut and ends in `...`.

    Raises Rejected where MLflow refuses or keeps another text, Unavailable where a tag did not take.
    """
    wanted = {key: fit(value) for key, value in tags.items()}
    for start in range(0, len(wanted), _TAGS_A_CALL):
        batch = list(wanted.items())[start : start + _TAGS_A_CALL]
        listed = [{"key": key, "value": value} for key, value in batch]
        http.post("/runs/log-batch", {"run_id": run_id, "tags": listed})
    held = facts(http, run_id).tags if wanted else {}
    for key, value in wanted.items():
        _compare(key, value, held.get(key))


def mark_killed(http: Http, run_id: str, now_ms: int) -> str:
    """Set an active run KILLED if it is RUNNING; return the status it has afterwards.

    Raises Rejected for a deleted run or without permission, Unavailable where the status did not take.
    """
    before = facts(http, run_id)
    if before.deleted:
        raise Rejected("the run is deleted: its status cannot be set")
    if before.status != _RUNNING:
        return before.status
    http.post("/runs/update", {"run_id": run_id, "status": _KILLED, "end_time": now_ms})
    after = facts(http, run_id).status
    if after == _RUNNING:
        raise Unavailable("MLflow took the status KILLED and still shows RUNNING")
    return after


def fit(value: str) -> str:
    """Return a tag's value as it can be stored everywhere: at most 5,000 bytes, cut visibly, no lone surrogates."""
    raw = value.encode("utf-8", "replace")
    if len(raw) <= TAG_BYTES:
        return raw.decode()
    return raw[: TAG_BYTES - len(_CUT)].decode("utf-8", "ignore") + _CUT


def _compare(key: str, wanted: str, held: str | None) -> None:
    if held is None:
        raise Unavailable(f"MLflow took the tag {one_line(key, 60)} and does not show it")
    if held != wanted:
        raise Rejected(f"MLflow keeps another text in the tag {one_line(key, 60)} than the one set")


def _pairs(value: object, what: str) -> dict[str, str]:
    listed = fields.items(value, what)
    if len(listed) > _MOST_PAIRS:
        raise TooMuch(f"the run has too many {what} (more than {_MOST_PAIRS})")
    pairs = [fields.mapping(item, what) for item in listed]
    read = {_required(pair.get("key"), what): fields.text(pair.get("value"), what) for pair in pairs}
    if len(read) != len(pairs):
        raise Unavailable(f"MLflow's answer contradicts itself in the {what}")
    return {key: text for key, text in read.items() if len(text) <= _LONGEST_VALUE}


def _required(value: object, what: str) -> str:
    read = fields.text(value, what)
    if not read:
        raise Unavailable(f"MLflow's answer has no {what}")
    return read
