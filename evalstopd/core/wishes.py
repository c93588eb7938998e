"""What a job's owner says in the Slurm comment: the one place munge proves who wrote it."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from evalstopd.core.model import Mode, Rung

_SEPARATORS = re.compile(r"[\s,;]+")
_VETO = re.compile(r"\bevalstop\s*[:=]\s*keep\b", re.IGNORECASE)
KEEP = "keep"
# As many comments as jobs that Slurm holds by default: the same ones come with each pass.
_MOST_COMMENTS = 10_000
UNDO = "evalstop_undo"


@dataclass(frozen=True, slots=True)
class Signal:
    """The owner's own notice: a signal to the batch script, then a grace in seconds before the cancel."""

    name: str
    grace_s: int


@dataclass(frozen=True, slots=True)
class Wishes:
    """The tokens of one comment. `faults` is not empty where they contradict: then nothing may be done.

    `undo` is the id of a stopped job whose work this one takes up again; `output` the folder of its checkpoints;
    `dataset` the one that judges it where its metric has the evals of several.
    """

    run_id: str | None = None
    rung: Rung | None = None
    keep: bool = False
    metric: str | None = None
    mode: Mode | None = None
    k: int | None = None
    signal: Signal | None = None
    faults: tuple[str, ...] = ()
    undo: str | None = None
    output: str | None = None
    dataset: str | None = None


@lru_cache(maxsize=_MOST_COMMENTS)
def parse_comment(comment: str) -> Wishes:
    """Read the tokens `key=value` of a comment; words without `=` and other tools' keys are ignored.

    An unknown value of ours and a key given twice are faults. The veto holds even beside a fault, and however it
    is spelled: an owner who means no must not be misread.
    """
    tokens = [word.partition("=")[::2] for word in _SEPARATORS.split(comment) if "=" in word]
    ours = [(key, value) for key, value in tokens if key == "mlflow_run" or key.startswith("evalstop")]
    keys = [key for key, _ in ours]
    faults = [f"{_shown(key)} is given more than once" for key in dict.fromkeys(keys) if keys.count(key) > 1]
    fields: dict[str, Any] = {}
    for key, value in ours:
        try:
            name, read = _READERS[key]
            fields[name] = read(value)
        except KeyError:
            faults.append(f"{_shown(key)} is not a known key")
        except ValueError:
            faults.append(f"{key} has the unknown value {_shown(value)}")
    return Wishes(**fields | {"keep": _VETO.search(comment) is not None}, faults=tuple(faults))


def merge_token(comment: str, key: str, value: str) -> str:
    """Return the comment with `key=value` put in place of the key's earlier tokens, all else kept."""
    kept = [word for word in _SEPARATORS.split(comment) if word and not word.startswith(f"{key}=")]
    return " ".join([*kept, f"{key}={value}"])


def _matching(form: str) -> Callable[[str], str]:
    def read(value: str) -> str:
        if not re.fullmatch(form, value):
            raise ValueError
        return value

    return read


def _rung(value: str) -> Rung | None:
    if value not in (KEEP, *(rung.word for rung in Rung)):
        raise ValueError
    return None if value == KEEP else Rung[value.upper()]


def _signal(value: str) -> Signal:
    found = re.fullmatch(r"(USR1|USR2|TERM|INT|HUP|CONT)@(\d{1,5})", value)
    if found is None:
        raise ValueError
    return Signal(found[1], int(found[2]))


def _shown(text: str) -> str:
    """Return user text fit for a line: printable ASCII, cut to 40 characters."""
    return ascii(text[:40])


_READERS: Mapping[str, tuple[str, Callable[[str], Any]]] = MappingProxyType(
    {
        "mlflow_run": ("run_id", _matching(r"[0-9A-Za-z_-]{1,64}")),
        "evalstop": ("rung", _rung),
        "evalstop_metric": ("metric", _matching(r"[0-9A-Za-z_./:@+-]{1,250}")),
        "evalstop_mode": ("mode", Mode),
        "evalstop_dataset": ("dataset", _matching(r"[0-9A-Za-z_./:@+=-]{1,265}")),
        "evalstop_k": ("k", lambda value: int(_matching(r"[1-9]\d?")(value))),
        "evalstop_signal": ("signal", _signal),
        "evalstop_output": ("output", _matching(r"[0-9A-Za-z_./@+=-]{1,1000}")),
        UNDO: ("undo", _matching(r"\d{1,12}(_\d{1,9})?")),
    }
)
