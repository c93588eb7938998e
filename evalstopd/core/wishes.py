"""What a job's owner says in the Slurm comment: the one place munge proves who wrote it."""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from evalstopd.core.comment import has_key, is_ours, restraint, says_keep, words_of
from evalstopd.core.model import Mode, Rung

RUNG, KEEP = "evalstop", "keep"
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
    """Read the words `key=value` of a comment; those of other tools are ignored.

    A word of ours is understood as it is documented, or, in another spelling, where it clearly holds us back. Any
    other one is a fault, as are an unknown value and a key given twice: an owner who means no must not be misread, and
    nothing is allowed by a guess. The veto holds even beside a fault.
    """
    ours = [(_key(word), word) for word in words_of(comment) if word.startswith("mlflow_run=") or is_ours(word)]
    often = Counter(key for key, _ in ours)
    faults = [f"{_shown(key)} is given more than once" for key, times in often.items() if times > 1]
    fields: dict[str, Any] = {}
    for key, word in ours:
        value = restraint(word) or word.partition("=")[2]
        try:
            name, read = _READERS[key]
            fields[name] = read(value)
        except KeyError:
            faults.append(_unknown(key, word))
        except ValueError:
            faults.append(f"{key} has the unknown value {_shown(value)}")
    return Wishes(**fields | {"keep": says_keep(comment)}, faults=tuple(faults))


def merge_token(comment: str, key: str, value: str) -> str:
    """Return the comment with `key=value` put in place of the key's earlier words in any spelling, all else kept."""
    return " ".join([*(word for word in words_of(comment) if not has_key(word, key)), f"{key}={value}"])


def is_parted_anew(comment: str) -> bool:
    """Tell whether a merge changes more than a word: what stands between the others becomes single spaces."""
    return " ".join(words_of(comment)) != comment.strip()


def _key(word: str) -> str:
    return RUNG if restraint(word) else word.partition("=")[0]


def _unknown(key: str, word: str) -> str:
    if re.fullmatch(r"evalstop\w*", key) and key != word:
        return f"{_shown(key)} is not a known key"
    return f"{_shown(word)} is not understood: words are spelled like evalstop=off"


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
        RUNG: ("rung", _rung),
        "evalstop_metric": ("metric", _matching(r"[0-9A-Za-z_./:@+-]{1,250}")),
        "evalstop_mode": ("mode", Mode),
        "evalstop_dataset": ("dataset", _matching(r"[0-9A-Za-z_./:@+=-]{1,265}")),
        "evalstop_k": ("k", lambda value: int(_matching(r"[1-9]\d?")(value))),
        "evalstop_signal": ("signal", _signal),
        "evalstop_output": ("output", _matching(r"[0-9A-Za-z_./@+=-]{1,1000}")),
        UNDO: ("undo", _matching(r"\d{1,12}(_\d{1,9})?")),
    }
)
