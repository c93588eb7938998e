"""Speaks to the privileged keeper over its socket, and trusts no answer's shape: it does a stranger's file work."""

import json
import math
import re
import socket
import time
from dataclasses import dataclass
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
_KEPT_S = 3600.0  # from the request, for who asks for it again
_UNPRINTABLE = (
    "the path of its output folder has characters that the keeper does not take (control characters, unusual spaces, "
    "or bytes that are no UTF-8)"
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


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request under way: its bytes, the connection that its answer comes by, and when it was sent (monotonic)."""

    data: bytes
    peer: socket.socket
    at_s: float


class KeeperClient:
    """The Keeper port: one connection, one request, one answer; never repeated here, as each verb is idempotent.

    A call waits `wait_s` seconds at most, then raises Unavailable while the keeper works on; the same call takes the
    answer later. So a pass is not held up, and the work is not thrown away. What has no answer after `timeout_s` is
    given up. The keeper serves one request of each owner at a time, so one of each owner is under way.
    """

    def __init__(self, socket_path: Path, timeout_s: float, wait_s: float = math.inf) -> None:
        self._path = str(socket_path)
        self._timeout_s, self._wait_s = timeout_s, wait_s
        self._under_way: dict[object, _Asked] = {}
        self._late: dict[tuple[object, bytes], tuple[float, bytes]] = {}

    def pin(self, place: PinPlace) -> PinReport:
        """Link and verify a checkpoint into its pin."""
        answer = self._ask("pin", place, **_of_checkpoint(place))
        return _report(answer, f"/.evalstop/{place.pin}/step-{place.step}")

    def repin(self, place: PinPlace) -> PinReport:
        """Make a pin anew; the earlier one stays while there is nothing new."""
        answer = self._ask("repin", place, **_of_checkpoint(place))
        return _report(answer, f"/.evalstop/{place.pin}/step-{place.step}")

    def verify(self, place: PinPlace) -> PinReport:
        """Check a pin against its manifest and its structure."""
        return _report(self._ask("verify", place), f"/.evalstop/{place.pin}/step-{place.step}")

    def publish(self, place: PinPlace) -> PinReport:
        """Verify a pin and make it the job's `best`; the path in the report is that of `best`."""
        return _report(self._ask("publish", place), f"/.evalstop/{place.pin}/best")

    def drop(self, place: PinPlace) -> None:
        """Remove a pin; removing what is not there is no error."""
        for name in [name for name in self._late if name[0] == place.uid]:
            del self._late[name]  # a pin made before is no news after
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
        if not place.output_dir.isprintable():
            raise Rejected(f"{_UNPRINTABLE}: {place.output_dir[:200]!a}")
        request = {"verb": verb, "uid": place.uid, "output_dir": place.output_dir, "pin": place.pin}
        answer = self._talk(request | {"step": place.step} | more)
        if answer.get("ok") is not True:
            _refuse(answer)
        return answer

    def _talk(self, request: dict[str, object]) -> dict[str, object]:
        try:
            answer = json.loads(self._answer(request.get("uid"), json.dumps(request).encode()))
        except OSError as error:
            raise Unavailable(f"keeper at {self._path}: {error.strerror or error}") from error
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise Unavailable(f"keeper at {self._path}: no answer that can be read")
        return answer

    def _answer(self, owner: object, data: bytes) -> bytes:
        """Return the answer: one that came late, that of the same request under way, or of a new one."""
        self._forget()
        if (owner, data) in self._late:
            return self._late.pop((owner, data))[1]
        asked = self._under_way.pop(owner, None)
        if asked is not None and asked.data != data:
            self._put_by(owner, asked)
            asked = None
        asked = asked or self._send(data)
        answer = self._read(asked, self._wait_s)
        if answer is None:
            self._under_way[owner] = asked
            raise Unavailable(f"keeper at {self._path}: still at work, a later pass takes the answer")
        return answer

    def _put_by(self, owner: object, asked: _Asked) -> None:
        """Keep the answer to an owner's other request for who asks it again. Raises Unavailable while there is none."""
        answer = self._read(asked, 0.0)
        if answer is None:
            self._under_way[owner] = asked
            raise Unavailable(f"keeper at {self._path}: at work on another request of this owner's")
        done = json.loads(asked.data).get("verb") in ("pin", "publish") and answer.startswith(b'{"ok": true')
        if done:  # a no, and what is only to be looked at, is about how things were
            self._late[(owner, asked.data)] = (asked.at_s, answer)

    def _send(self, data: bytes) -> _Asked:
        peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            peer.settimeout(min(self._wait_s, self._timeout_s))
            peer.connect(self._path)
            peer.send(data)
        except OSError:
            peer.close()
            raise
        return _Asked(data, peer, time.monotonic())

    def _read(self, asked: _Asked, wait_s: float) -> bytes | None:
        """Return the answer, or None where it may still come. Raises OSError where it will not."""
        until_s = asked.at_s + self._timeout_s
        try:
            asked.peer.settimeout(max(0.0, min(wait_s, until_s - time.monotonic())))
            answer = asked.peer.recv(MAX_ANSWER)
        except (TimeoutError, BlockingIOError):
            if time.monotonic() < until_s:
                return None
            asked.peer.close()
            raise TimeoutError("timed out") from None
        except OSError:
            asked.peer.close()
            raise
        asked.peer.close()
        return answer

    def _forget(self) -> None:
        """Drop what nobody has come back for."""
        before_s = time.monotonic() - _KEPT_S
        for owner, asked in list(self._under_way.items()):
            if asked.at_s < before_s and self._under_way.pop(owner, None) is not None:
                asked.peer.close()
        for name, (at_s, _) in list(self._late.items()):
            if at_s < before_s:
                self._late.pop(name, None)


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
