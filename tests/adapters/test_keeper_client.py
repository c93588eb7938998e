"""The client against the real keeper, and against sockets that answer nonsense or nothing."""

import contextlib
import json
import shutil
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from evalstopd.adapters.keeper_client import KeeperClient
from evalstopd.core.corroborate import OwnerLog
from evalstopd.errors import (
    CheckpointFailed,
    CheckpointIncomplete,
    CheckpointMissing,
    EvalstopError,
    Rejected,
    Unavailable,
)
from evalstopd.ports import Keeper as KeeperPort
from evalstopd.ports import PinPlace, PinReport
from tests.keeper.world import Keeper, World, keeper, world

as_root = pytest.mark.root


@pytest.fixture
def place() -> Iterator[World]:
    with world() as made:
        yield made


@pytest.fixture
def running(place: World) -> Iterator[Keeper]:
    with keeper(place.root) as made:
        yield made


@pytest.fixture
def client(running: Keeper) -> KeeperPort:
    return KeeperClient(running.path, 30)


def told(**changes: object) -> bytes:
    """Compose what a pin of step 1 answers, some of it changed: the owner can forge any of it."""
    good = {"ok": True, "path": "/x/.evalstop/c-1-1/step-1", "files": 1, "bytes": 1, "manifest": "f" * 64}
    return json.dumps(good | changes).encode()


def at(place: World, step: int = 200) -> PinPlace:
    return PinPlace(place.alice.pw_uid, str(place.run), "c-7-100", step)


@pytest.mark.parametrize("path", ["/home/a\x01b", "/home/a\nb", "/home/a\udcff", "/home/a\u2028"])
def test_a_path_that_the_keeper_does_not_take_is_refused_in_plain_words_unasked(path: str, tmp_path: Path) -> None:
    client = KeeperClient(tmp_path / "none", 30)
    for ask in (client.pin, client.verify, client.publish, client.drop, client.log):
        with pytest.raises(Rejected, match=r"^the path of its output folder has characters that the keeper") as no:
            ask(PinPlace(1001, path, "c-7-100", 200))
        assert str(no.value).isprintable()


@as_root
def test_a_pin_is_made_verified_published_and_dropped(place: World, client: KeeperPort) -> None:
    source = place.save()

    made = client.pin(at(place))
    shutil.rmtree(source)

    assert (made.path, made.files) == (str(place.home / "step-200"), 41)
    assert client.verify(at(place)) == client.pin(at(place)) == made
    assert client.publish(at(place)) == PinReport(str(place.home / "best"), made.files, made.size, made.manifest)
    client.drop(at(place))
    client.drop(at(place))
    assert list(place.home.iterdir()) == []


@as_root
def test_each_refusal_is_the_ports_error(place: World, client: KeeperPort) -> None:
    with pytest.raises(CheckpointMissing, match="no checkpoint of step 200"):
        client.pin(at(place))
    folder = place.save()
    with pytest.raises(CheckpointMissing):
        client.publish(at(place))
    (folder / "trainer_state.json").rename(folder / "later")
    with pytest.raises(CheckpointIncomplete, match=r"no trainer_state\.json"):
        client.pin(at(place))
    (folder / "later").rename(folder / "trainer_state.json")
    client.pin(at(place))
    (folder / "scheduler.pt").write_bytes(b"another life's")
    with pytest.raises(Rejected, match=r"not as pinned: scheduler\.pt"):
        client.verify(at(place))


@as_root
def test_a_time_out_in_the_keeper_is_a_failure_worth_another_try(place: World) -> None:
    place.save()
    with keeper(place.root, "--time-limit-s", "0.001") as slow, pytest.raises(CheckpointFailed, match="timed out"):
        KeeperClient(slow.path, 30).pin(at(place))


@as_root
def test_the_keeper_goes_on_with_what_nobody_waits_for_and_the_answer_is_taken_later(
    place: World, running: Keeper
) -> None:
    place.save()
    hasty = KeeperClient(running.path, 60, 0.001)
    running.process.send_signal(signal.SIGSTOP)
    with pytest.raises(Unavailable, match="still at work"):
        hasty.pin(at(place))
    running.process.send_signal(signal.SIGCONT)
    made = patiently(lambda: hasty.pin(at(place)))

    assert made == KeeperClient(running.path, 60).verify(at(place))
    assert patiently(lambda: hasty.publish(at(place))).path == str(place.home / "best")


@as_root
def test_ping_says_whether_the_keeper_listens(running: Keeper) -> None:
    assert KeeperClient(running.path, 5).ping() == f"listens at {running.path}"


@contextlib.contextmanager
def answering(path: Path, answer: bytes | None) -> Iterator[KeeperClient]:
    """Give the client of a socket whose peer answers once what it is told to, or hangs up, or (None) is silent."""
    over = threading.Event()

    def serve() -> None:
        peer, _ = listener.accept()
        with peer:
            peer.recv(70_000)
            if answer is None:
                over.wait(10)
            elif answer:
                peer.send(answer)

    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(path))
        listener.listen()
        server = threading.Thread(target=serve)
        server.start()
        yield KeeperClient(path, 0.3)
        over.set()
        server.join()


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (None, Unavailable),
        (b"", Unavailable),
        (b"{", Unavailable),
        (b"[]", Unavailable),
        (b"[" * 60_000, Unavailable),
        (b"{}", Unavailable),
        (b'{"ok": 1, "path": "/x", "files": 1, "bytes": 1, "manifest": ""}', Unavailable),
        (b'{"ok": true, "path": "/x", "files": "1", "bytes": 1, "manifest": ""}', Unavailable),
        (b'{"ok": true}', Unavailable),
        (told(path="/x/.evalstop/c-1-1/step-2"), Unavailable),
        (told(path="x/.evalstop/c-1-1/step-1"), Unavailable),
        (told(path="/\x1b[2J/.evalstop/c-1-1/step-1"), Unavailable),
        (told(path="/" + "x" * 5000 + "/.evalstop/c-1-1/step-1"), Unavailable),
        (told(files=-1), Unavailable),
        (told(bytes=2**63), Unavailable),
        (told(bytes=10**400), Unavailable),
        (told(manifest="f" * 63), Unavailable),
        (told(manifest="F" * 64), Unavailable),
        (b'{"ok": false, "kind": "busy", "why": "x"}', Unavailable),
        (b'{"ok": false, "kind": "unheard of", "why": "x"}', Unavailable),
        (b'{"ok": false, "kind": ["missing"], "why": "x"}', Unavailable),
        (b'{"ok": false, "kind": "missing", "why": "x"}', CheckpointMissing),
        (b'{"ok": false, "kind": "refused", "why": "\\u001b[2J"}', Rejected),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_no_answer_is_taken_for_more_than_it_says(
    tmp_path: Path, answer: bytes | None, error: type[EvalstopError]
) -> None:
    with answering(tmp_path / "s", answer) as client, pytest.raises(error) as caught:
        client.pin(PinPlace(1000, "/x", "c-1-1", 1))

    assert type(caught.value) is error
    assert str(caught.value).isprintable()


def test_an_answer_of_the_known_shape_is_taken(tmp_path: Path) -> None:
    with answering(tmp_path / "s", told()) as client:
        report = client.pin(PinPlace(1000, "/x", "c-1-1", 1))

    assert report == PinReport("/x/.evalstop/c-1-1/step-1", 1, 1, "f" * 64)


def test_no_keeper_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="No such file"):
        KeeperClient(tmp_path / "none", 1).ping()


def test_ping_passes_a_refusal_on(tmp_path: Path) -> None:
    """A keeper that does not let this uid ask is no good keeper to `check`."""
    answer = b'{"ok": false, "kind": "refused", "why": "uid 7 may not ask"}'
    with answering(tmp_path / "s", answer) as client, pytest.raises(Rejected, match="may not ask"):
        client.ping()


def log_told(**changes: object) -> bytes:
    """Compose what a log answers, some of it changed: the owner can forge any of it."""
    good = {"ok": True, "file": "trainer_state.json", "digest": "f" * 64, "series": {"m": [[1, 0.5]]}}
    return json.dumps(good | changes).encode()


@as_root
def test_the_owners_log_is_read(place: World, client: KeeperPort) -> None:
    (place.save() / "trainer_state.json").write_text('{"log_history": [{"step": 100, "eval/reward": 0.5}]}')

    log = client.log(replace(at(place), metric="eval/reward"))

    assert (log.file, log.series) == ("checkpoint-200/trainer_state.json", {"eval/reward": ((100, 0.5),)})
    with pytest.raises(CheckpointMissing, match="present life"):
        client.log(replace(at(place), since_s=2**33))


@pytest.mark.parametrize(
    "changes",
    [
        {"file": "../other/trainer_state.json"},
        {"file": "checkpoint-1\n/trainer_state.json"},
        {"file": 7},
        {"digest": "f" * 63},
        {"series": []},
        {"series": {"m": {}}},
        {"series": {"m": [1]}},
        {"series": {"m": [[1, 0.5, 2]]}},
        {"series": {"m": [[1.0, 0.5]]}},
        {"series": {"m": [[-1, 0.5]]}},
        {"series": {"m": [[2**63, 0.5]]}},
        {"series": {"m": [[1, "0.5"]]}},
        {"series": {"m": [[1, float("nan")]]}},
        {"series": {"m": [[1, float("inf")]]}},
    ],
    ids=repr,
)
def test_no_log_is_taken_for_more_than_it_says(tmp_path: Path, changes: dict[str, object]) -> None:
    with answering(tmp_path / "s", log_told(**changes)) as client, pytest.raises(Unavailable, match="unknown shape"):
        client.log(PinPlace(1000, "/x", "c-1-1", 1))


def test_a_log_of_the_known_shape_is_taken(tmp_path: Path) -> None:
    with answering(tmp_path / "s", log_told()) as client:
        log = client.log(PinPlace(1000, "/x", "c-1-1", 1))

    assert log == OwnerLog("trainer_state.json", "f" * 64, {"m": ((1, 0.5),)})


@contextlib.contextmanager
def slowly(path: Path) -> Iterator[tuple[KeeperClient, list[dict[str, object]], threading.Semaphore]]:
    """Give a client that waits for 50 ms, what its keeper was asked, and what lets that one answer once more."""
    asked: list[dict[str, object]] = []
    may, over = threading.Semaphore(0), threading.Event()

    def serve() -> None:
        while not over.is_set():
            with contextlib.suppress(TimeoutError):
                peer, _ = listener.accept()
                with peer:
                    asked.append(json.loads(peer.recv(70_000)))
                    may.acquire()
                    step = asked[-1]["step"]
                    with contextlib.suppress(OSError):
                        peer.send(told(path=f"/x/.evalstop/c-1-1/step-{step}"))

    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(path))
        listener.listen()
        listener.settimeout(0.05)
        server = threading.Thread(target=serve)
        server.start()
        yield KeeperClient(path, 60, 0.05), asked, may
        over.set()
        may.release(10)
        server.join()


def patiently(ask: Callable[[], PinReport]) -> PinReport:
    """Ask until there is an answer, as one pass after the other does."""
    until_s = time.monotonic() + 60.0
    while time.monotonic() < until_s:
        with contextlib.suppress(Unavailable):
            return ask()
    raise AssertionError("no answer within a minute")


def test_what_takes_longer_than_a_pass_waits_goes_on_and_is_asked_for_once(tmp_path: Path) -> None:
    place = PinPlace(7, "/x/run", "c-1-1", 1)
    with slowly(tmp_path / "s") as (client, asked, may):
        for _ in range(3):
            with pytest.raises(Unavailable, match="still at work"):
                client.pin(place)
        may.release()
        report = patiently(lambda: client.pin(place))

    assert report.path == "/x/.evalstop/c-1-1/step-1"
    assert len(asked) == 1


def test_an_answer_that_comes_while_another_is_asked_for_is_kept_for_who_asks_again(tmp_path: Path) -> None:
    first, second = PinPlace(7, "/x/run", "c-1-1", 1), PinPlace(7, "/x/run", "c-1-1", 2)
    with slowly(tmp_path / "s") as (client, asked, may):
        with pytest.raises(Unavailable, match="still at work"):
            client.pin(first)
        with pytest.raises(Unavailable, match="another request of this owner's"):
            client.pin(second)
        may.release(2)
        assert patiently(lambda: client.pin(second)).path.endswith("step-2")
        assert client.pin(first).path.endswith("step-1")

    assert [each["step"] for each in asked] == [1, 2]


def test_another_owners_request_waits_for_none_that_is_under_way(tmp_path: Path) -> None:
    with slowly(tmp_path / "s") as (client, asked, may):
        with pytest.raises(Unavailable):
            client.pin(PinPlace(7, "/x/run", "c-1-1", 1))
        may.release(2)
        assert patiently(lambda: client.pin(PinPlace(8, "/x/run", "c-1-1", 2))).path.endswith("step-2")
        assert patiently(lambda: client.pin(PinPlace(7, "/x/run", "c-1-1", 1))).path.endswith("step-1")

    assert len(asked) == 2
