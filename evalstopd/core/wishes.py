"""What a job's owner says in the Slurm comment: the one place munge proves who wrote it."""

import re
from dataclasses import dataclass

from evalstopd.core.model import Mode, Rung

_SEPARATORS = re.compile(r"[\s,;]+")
_RUN_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")
_METRIC = re.compile(r"[0-9A-Za-z_./:@+-]{1,250}")
_SIGNAL = re.compile(r"(USR1|USR2|TERM|INT|HUP|CONT)@(\d{1,5})")
_RUNGS = {rung.word: rung for rung in Rung}
KEEP = "keep"


@dataclass(frozen=True, slots=True)
class Signal:
    """The owner's own notice: a signal to the batch script, then a grace in seconds before the cancel."""

    name: str
    grace_s: int


@dataclass(frozen=True, slots=True)
class Wishes:
    """The tokens of one comment. `faults` is not empty where they contradict: then nothing may be done."""

    run_id: str | None = None
    rung: Rung | None = None
    keep: bool = False
    metric: str | None = None
    mode: Mode | None = None
    k: int | None = None
    signal: Signal | None = None
    faults: tuple[str, ...] = ()


def parse_comment(comment: str) -> Wishes:
    """Read the tokens `key=value` of a comment; words without `=` and other tools' keys are ignored.

    An unknown value of ours and a key given twice are faults. `evalstop=keep` holds even beside a fault.
    """
    tokens = [word.partition("=")[::2] for word in _SEPARATORS.split(comment) if "=" in word]
    ours = [(key, value) for key, value in tokens if key == "mlflow_run" or key.startswith("evalstop")]
    faults: list[str] = []
    for key in sorted({key for key, _ in ours}):
        if len([1 for each, _ in ours if each == key]) > 1:
            faults.append(f"{_shown(key)} is given more than once")
    values = dict(ours)
    wishes = _read(values, faults)
    keep = ("evalstop", KEEP) in ours
    return Wishes(*wishes, faults=tuple(faults)) if not keep else Wishes(
        wishes[0], wishes[1], True, *wishes[3:], faults=tuple(faults)
    )


def merge_token(comment: str, key: str, value: str) -> str:
    """Return the comment with `key=value` put in place of the key's earlier tokens, all else kept."""
    kept = [word for word in _SEPARATORS.split(comment) if word and not word.startswith(f"{key}=")]
    return " ".join([*kept, f"{key}={value}"])


_Fields = tuple[str | None, Rung | None, bool, str | None, Mode | None, int | None, Signal | None]


def _read(values: dict[str, str], faults: list[str]) -> _Fields:
    known = {"mlflow_run", "evalstop", "evalstop_metric", "evalstop_mode", "evalstop_k", "evalstop_signal"}
    faults.extend(f"{_shown(key)} is not a known key" for key in sorted(set(values) - known))
    rung = values.get("evalstop")
    k = values.get("evalstop_k")
    mode = values.get("evalstop_mode")
    signal = values.get("evalstop_signal")
    if rung is not None and rung != KEEP and rung not in _RUNGS:
        faults.append(_bad("evalstop", rung))
    if k is not None and not re.fullmatch(r"[1-9]\d?", k):
        faults.append(_bad("evalstop_k", k))
    if mode is not None and mode not in tuple(Mode):
        faults.append(_bad("evalstop_mode", mode))
    if signal is not None and not _SIGNAL.fullmatch(signal):
        faults.append(_bad("evalstop_signal", signal))
    run_id = _matching(values, "mlflow_run", _RUN_ID, faults)
    metric = _matching(values, "evalstop_metric", _METRIC, faults)
    if faults:
        return (run_id, None, False, metric, None, None, None)
    return (run_id, _RUNGS.get(rung or ""), False, metric, Mode(mode) if mode else None,
            int(k) if k else None, _signal(signal))


def _matching(values: dict[str, str], key: str, form: re.Pattern[str], faults: list[str]) -> str | None:
    value = values.get(key)
    if value is not None and not form.fullmatch(value):
        faults.append(_bad(key, value))
        return None
    return value


def _signal(text: str | None) -> Signal | None:
    found = _SIGNAL.fullmatch(text) if text else None
    return Signal(found[1], int(found[2])) if found else None


def _bad(key: str, value: str) -> str:
    return f"{key} has the unknown value {_shown(value)}"


def _shown(text: str) -> str:
    """Return user text fit for a line: printable ASCII, cut to 40 characters."""
    return ascii(text[:40])
