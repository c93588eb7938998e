"""Speaks to the privileged keeper over its socket, and trusts no answer's shape: it does a stranger's file work."""

import json
import math
import re
import socket
from pathlib import Path
from typing import NoReturn

from evalstopd.core.corroborate import OwnerLog
from evalstopd.errors import (
    CheckpointFailed,
    CheckpointIncomplete,
    CheckpointMissing,
    EvalstopError,
    Rejected,
    Unavailable,
)
from evalstopd.ports import PinPlace, PinReport

MAX_ANSWER = 64 * 1024
MAX_PATH = 4500  # characters: the output folder's 4000, the pin's name, ours
MOST = 2**63 - 1  # files or bytes: what the store can hold
DIGEST = re.compile(r"[0-9a-f]{64}")
LOG_FILE = re.compile(
    r"(checkpoint-[0-9]{1,15}/)?trainer_state\.json|(\.\./|lightning_logs/version_[0-9]{1,9}/)?metrics\.csv", re.ASCII
)
_UNKNOWN_SHAPE = "the keeper's answer has an unknown shape"
ERRORS: dict[str, type[EvalstopError]] = {
    "busy": Unavailable,
    "missing": CheckpointMissing,
    "incomplete": CheckpointIncomplete,
    "changed": Rejected,
    "refused": Rejected,
    "failed": CheckpointFailed,
}


class KeeperClient:
    """The Keeper port: one connection, one request, one answer; never retried here, as each verb is idempotent."""

    def __init__(self, socket_path: Path, timeout_s: float) -> None:
        self._path = str(socket_path)
        self._timeout_s = timeout_s

    def pin(self, place: PinPlace) -> PinReport:
        """Link and verify a checkpoint into its pin."""
        answer = self._ask("pin", place, **_of_checkpoint(place))
        return _report(answer, f"/.evalstop/{place.pin}/step-{place.step}")

    def verify(self, place: PinPlace) -> PinReport:
        """Check a pin against its manifest and its structure."""
        return _report(self._ask("verify", place), f"/.evalstop/{place.pin}/step-{place.step}")

    def publish(self, place: PinPlace) -> PinReport:
        """Verify a pin and make it the job's `best`; the path in the report is that of `best`."""
        return _report(self._ask("publish", place), f"/.evalstop/{place.pin}/best")

    def drop(self, place: PinPlace) -> None:
        """Remove a pin; removing what is not there is no error."""
        self._ask("drop", place)

    def log(self, place: PinPlace) -> OwnerLog:
        """Read the owner's newest training log."""
        return _log(self._ask("log", place, **_of_checkpoint(place)))

    def ping(self) -> str:
        """Say that the keeper listens to us. Raises Unavailable or Rejected."""
        answer = self._talk({})
        if not str(answer.get("why")).startswith("malformed"):
            _refuse(answer)
        return f"listens at {self._path}"

    def _ask(self, verb: str, place: PinPlace, **more: str | float) -> dict[str, object]:
        request = {"verb": verb, "uid": place.uid, "output_dir": place.output_dir, "pin": place.pin}
        answer = self._talk(request | {"step": place.step} | more)
        if answer.get("ok") is not True:
            _refuse(answer)
        return answer

    def _talk(self, request: dict[str, object]) -> dict[str, object]:
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
                peer.settimeout(self._timeout_s)
                peer.connect(self._path)
                peer.send(json.dumps(request).encode())
                answer = json.loads(peer.recv(MAX_ANSWER))
        except OSError as error:
            raise Unavailable(f"keeper at {self._path}: {error.strerror or error}") from error
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise Unavailable(f"keeper at {self._path}: no answer that can be read")
        return answer


def _of_checkpoint(place: PinPlace) -> dict[str, str | float]:
    """Return the fields of a request that are of verbs pin and log only."""
    more: dict[str, str | float] = {"since_s": place.since_s, "metric": place.metric}
    return more | {"score": float(place.score), "later": int(place.later)}


def _refuse(answer: dict[str, object]) -> NoReturn:
    why = answer.get("why")
    text = why if isinstance(why, str) and why.isascii() and why.isprintable() else "an answer of unknown shape"
    raise ERRORS.get(str(answer.get("kind")), Unavailable)(text)


def _report(answer: dict[str, object], ending: str) -> PinReport:
    """Read a report: the owner's process made it, so its path must at least be one that could be, its numbers too."""
    match answer:
        case {"path": str(path), "files": int(files), "bytes": int(size), "manifest": str(manifest)} if (
            path.startswith("/") and path.endswith(ending) and path.isprintable() and len(path) <= MAX_PATH
        ) and (0 <= files <= MOST and 0 <= size <= MOST and DIGEST.fullmatch(manifest)):
            return PinReport(path, files, size, manifest)
        case _:
            raise Unavailable(_UNKNOWN_SHAPE)


def _log(answer: dict[str, object]) -> OwnerLog:
    """Read a log as the owner's process tells it: what it may be is all that is checked, for it is the owner's word."""
    match answer:
        case {"file": str(file), "digest": str(digest), "series": dict(series)} if LOG_FILE.fullmatch(
            file
        ) and DIGEST.fullmatch(digest):
            return OwnerLog(file, digest, {str(name): _pairs(pairs) for name, pairs in series.items()})
        case _:
            raise Unavailable(_UNKNOWN_SHAPE)


def _pairs(pairs: object) -> tuple[tuple[int, float], ...]:
    if not isinstance(pairs, list):
        raise Unavailable(_UNKNOWN_SHAPE)
    return tuple(map(_pair, pairs))


def _pair(pair: object) -> tuple[int, float]:
    match pair:
        case [int(step), float(value)] if 0 <= step <= MOST and math.isfinite(value):
            return step, value
        case _:
            raise Unavailable(_UNKNOWN_SHAPE)
