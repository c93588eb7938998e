"""Pin, verify, publish and drop one checkpoint, or read the log, as the owner: keeper.py starts this, never as root.

The request, of a shape that the keeper has checked, is read from the file descriptor given; one line of JSON on
standard output is the answer. It follows no link and unpickles nothing.
Checkpoints are found by step in the layouts of trainers that tell when one is whole; `find` knows them.
Pins: <parent of output_dir if the owner's, else output_dir>/.evalstop/<pin>/ with step-N, step-N.json, best.
"""

import csv
import errno
import hashlib
import io
import json
import math
import os
import re
import shutil
import stat
import sys
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, BinaryIO, NamedTuple

MAX_REQUEST = 64 * 1024  # bytes
MAX_JSON = 16 * 1024**2  # bytes of a training log, an index or a manifest
MAX_HEADER = 100_000_000  # bytes of a safetensors header: the format's own limit
MAX_DEPTH = 8  # of folders in a checkpoint
MAX_ANSWER = 60_000  # bytes: the pipe to the keeper holds 64 KiB, and is read when this process has ended
MAX_NAMES = 10_000  # in an output folder, of which logs are looked for
MAX_CRC = 4 * 1024**3  # bytes of one checkpoint up to which its files' contents are read
MAX_NAME = 250  # characters of a metric's name
MARKER = "trainer_state.json"  # Hugging Face's trainers write it last
CHECKPOINT = re.compile(r"checkpoint-[0-9]{1,15}", re.ASCII)
CSV = "metrics.csv"  # of Lightning's CSVLogger, in lightning_logs/version_N, where ModelCheckpoint makes `checkpoints`
CSV_RUNS, CSV_RUN, CSV_CHECKPOINTS = "lightning_logs", re.compile(r"version_[0-9]{1,9}", re.ASCII), "checkpoints"
LOGGED_BESIDE = ("stderr", "_n", "_items", "samples", "runtime", "samples_per_second", "example_count")
TRACKER = "latest_checkpointed_iteration.txt"  # verl writes it last, beside its checkpoints
MAX_TRACKER = 32  # bytes of it
SHARDED = ".ckpt"  # so end Lightning's folders, of its FSDP, model-parallel and DeepSpeed strategies
LAST, INDEX = "meta.pt", ".metadata"  # FSDP: written last, by one process, after the index that torch writes last
TAG = "latest"  # DeepSpeed: one process writes it after its own shards, while others may still write theirs
SKEW_NS = 2 * 10**9  # by which the clocks of nodes that write to one folder may differ
WEIGHTS = (".pt", ".pth", ".bin", ".ckpt")
STEP = re.compile(r"(?:^|[^A-Za-z])step([=_-]?)([0-9]{1,15})(?![0-9])", re.ASCII)  # in the name of a file
NOT_LINKABLE = {errno.EXDEV, errno.EMLINK, errno.EPERM, errno.EOPNOTSUPP}  # a copy may still work
FORBIDDEN = {errno.EACCES, errno.EPERM, errno.ELOOP}  # the owner himself may not
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK  # a pipe opens without waiting, to be refused
FOLDER = READ | os.O_DIRECTORY
PASS = os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY  # needs no right to list the folder
WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL


class Refusal(Exception):
    """The answer is no: (kind, why); kinds: missing, incomplete (not yet whole), changed, refused, failed."""


class Missing(Refusal):
    """The refusal of kind missing."""


class Request(NamedTuple):
    """What the keeper passes on; the last four are of verbs pin, repin and log only."""

    verb: str
    uid: int
    output_dir: str
    pin: str
    step: int
    max_files: int
    max_bytes: int
    since_s: int = 0
    metric: str = ""
    score: float = 0.0
    later: int = 0


class Entry(NamedTuple):
    """A file in a manifest. No ctime: it changes with each link made and each of the trainer's unlinks."""

    path: str
    size: int
    mtime_ns: int
    inode: int


# Paths are opened step by step: that refuses what openat2(RESOLVE_NO_SYMLINKS) refuses, on every kernel.
def enter(folder: int, name: str, flags: int = FOLDER) -> int:
    """Open a folder below another; it must be the owner's unless we only pass through."""
    try:
        inside = os.open(name, flags, dir_fd=folder)
    except FileNotFoundError:
        raise Missing("missing", f"no folder {name}") from None
    except NotADirectoryError:
        raise Refusal("refused", f"symbolic link, or no folder: {name} (links are not followed)") from None
    if flags != PASS:
        judge(os.fstat(inside), name)
    return inside


def judge(status: os.stat_result, path: str) -> Entry:
    """Describe a file or folder; refuse anything else, and what is not the owner's (who this process is)."""
    if status.st_uid != os.geteuid():
        raise Refusal("refused", f"not the owner's: {path}")
    if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
        raise Refusal("refused", f"a link, a pipe or a device: {path}")
    return Entry(path, status.st_size, status.st_mtime_ns, status.st_ino)


def open_file(folder: int, name: str) -> BinaryIO:
    """Open a file for reading and judge the very inode that was opened."""

    def opener(path: str, _: int) -> int:
        file = os.open(path, READ, dir_fd=folder)
        judge(os.fstat(file), path)
        return file

    return open(name, "rb", opener=opener)


def list_anew(folder: int) -> list[str]:
    """List a folder anew: the file descriptor of one opened earlier may only show what was there then (btrfs)."""
    again = os.open(".", FOLDER, dir_fd=folder)
    found = os.listdir(again)
    os.close(again)
    return found


def walk(folder: int, prefix: str = "", only: str = "") -> Iterator[tuple[int, str, set[str], dict[str, Entry]]]:
    """Yield (fd, path below the top and a slash, folders, files) of a folder and each below, all judged.

    With `only` that one name of the top alone.
    """
    status = {name: os.lstat(name, dir_fd=folder) for name in ([only] if only else list_anew(folder))}
    found = {name: judge(status[name], prefix + name) for name in status}
    folders = {name for name in found if stat.S_ISDIR(status[name].st_mode)}
    if prefix.count("/") > MAX_DEPTH:
        raise Refusal("refused", f"folders nested deeper than {MAX_DEPTH}")
    yield folder, prefix, folders, {name: found[name] for name in found if name not in folders}
    for name in folders:
        inside = enter(folder, name)
        yield from walk(inside, f"{prefix}{name}/")
        os.close(inside)


def listing(folder: int, limits: Request, only: str = "") -> list[Entry]:
    """Describe every file below, sorted by path; refuse more than the limits."""
    found: list[Entry] = []
    size = 0
    for _, _, _, files in walk(folder, only=only):
        found += files.values()
        size += sum(entry.size for entry in files.values())
        if len(found) > limits.max_files or size > limits.max_bytes:
            raise Refusal("refused", f"more than {limits.max_files} files or {limits.max_bytes} bytes")
    return sorted(found)


class Source(NamedTuple):
    """A step's checkpoint: a folder, or one file in it, and what its trainer writes last.

    That is a file in the checkpoint (MARKER; of a `sharded` one LAST or TAG), one beside it (TRACKER, open), or the end
    of the file itself.
    """

    folder: int
    only: str = ""
    tracker: int | None = None
    sharded: bool = False

    def require_complete(self, step: int, later: int, entries: list[Entry]) -> None:
        """Refuse what the trainer has not finished."""
        if self.sharded:
            self._require_shards(later, {entry.path: entry.mtime_ns for entry in entries})
        elif self.tracker is not None:
            with open_file(self.tracker, TRACKER) as file:
                said, written_ns = file.read(MAX_TRACKER), os.fstat(file.fileno()).st_mtime_ns
            newest = int(said) if said.isdigit() else -1
            if newest < step or written_ns < max((entry.mtime_ns for entry in entries), default=0):
                raise Refusal("incomplete", f"{TRACKER} does not tell of step {step} yet")
        elif not self.only and MARKER not in {entry.path for entry in entries}:
            raise Refusal("incomplete", f"no {MARKER}")

    def _require_shards(self, later: int, written_ns: dict[str, int]) -> None:
        """Refuse shards of which one process may still be writing.

        DeepSpeed's processes wait for each other after the last file: a training that has logged a later eval is past
        that, and nothing in the folder tells as much.
        """
        if LAST in written_ns:
            late = max(written_ns.values()) > written_ns[LAST] + SKEW_NS
            if INDEX not in written_ns or late:
                raise Refusal("incomplete", f"{LAST} is older than the shards, or there is no {INDEX}")
        elif TAG not in written_ns or len(written_ns) == 1:
            raise Refusal("incomplete", f"no {LAST} and no {TAG} with shards: a process still writes, or none we know")
        elif not later:
            raise Refusal("incomplete", "processes may still write their shards: a later eval will tell that none does")

    def completed_ns(self, entries: list[Entry]) -> int:
        """Return when it was finished; of what is not, some time in the future."""
        in_it = self.tracker is None and not self.only
        last_files = (LAST, TAG) if self.sharded else (MARKER,)
        last = [entry.mtime_ns for entry in entries if entry.path in last_files or not in_it]
        return max(last, default=2**63)


def find(output: int, step: int) -> Source:
    """Find a step's checkpoint: Hugging Face's folder, verl's, or a file or Lightning's folder named by the step."""
    with suppress(Missing):
        return Source(enter(output, f"checkpoint-{step}"))
    with suppress(Missing):
        return Source(enter(output, f"global_step_{step}"), tracker=output)
    found = [(rank, name) for name in list_anew(output) if (rank := rank_of(output, name, step))]
    if not found:
        raise Missing("missing", f"no checkpoint of step {step}")
    name = max(found)[1]
    if stat.S_ISDIR(os.lstat(name, dir_fd=output).st_mode):
        return Source(enter(output, name), sharded=True)
    return Source(output, only=name)


def rank_of(output: int, name: str, step: int) -> tuple[bool, int] | None:
    """Tell how well the name of a file, or of a folder of shards, says that it is the step's: the newest ranks highest.

    Lightning's `step=50` is the number of steps done; its logger counts from 0 and calls the same step 49.
    """
    said = STEP.findall(name) if name.endswith((*WEIGHTS, ".safetensors")) else []
    if len(said) != 1 or int(said[0][1]) not in {step, step + 1}:
        return None
    lightnings = said[0][0] == "=" and name.endswith(".ckpt") and int(said[0][1]) == step + 1
    status = os.lstat(name, dir_fd=output)
    kind = stat.S_ISREG(status.st_mode) or (stat.S_ISDIR(status.st_mode) and name.endswith(SHARDED))
    fits = kind and (lightnings or int(said[0][1]) == step)
    return (lightnings, status.st_mtime_ns) if fits else None


def require_whole(folder: int, entries: list[Entry], kind: str) -> None:
    """Refuse unless every known format is whole; sync all to disk; seal the folders."""
    names = {entry.path for entry in entries}
    read = 0
    for inside, prefix, _, files in walk(folder):
        for name, entry in files.items():
            read += entry.size
            with open_file(inside, name) as file:
                try:
                    check_file(file, entry, prefix, names, whole=read <= MAX_CRC)
                except Exception as error:  # json and zipfile raise whatever a hostile file provokes
                    if isinstance(error, MemoryError) or getattr(error, "errno", errno.EINVAL) != errno.EINVAL:
                        raise
                    raise Refusal(kind, f"{entry.path}: {error}") from None
                os.fsync(file.fileno())
        os.fsync(inside)
        os.fchmod(inside, 0o500)  # never a file's mode: the trainer's file has the same


def check_file(file: BinaryIO, entry: Entry, prefix: str, names: set[str], *, whole: bool) -> None:
    """Raise something unless the file is whole; contents are only read where `whole` says that there is time."""
    if entry.path == MARKER:
        read_table(file, MAX_JSON, "no whole JSON object: half written, or of another format")
    elif entry.path.endswith(".index.json"):
        index = read_table(file, MAX_JSON, "no whole index of shards: half written, or of another format")
        shards = index.get("weight_map", {})
        if not isinstance(shards, dict) or not all(isinstance(shard, str) for shard in shards.values()):
            raise ValueError("no index of shards: its weight_map has another form")
        if lost := {prefix + shard for shard in shards.values()} - names:
            raise ValueError(f"no {min(lost)}")
    elif entry.path.endswith(".safetensors"):
        if size_by_header(file) != entry.size:
            raise ValueError("a safetensors file of another size than its header tells: half written, or damaged")
    elif entry.path.endswith(WEIGHTS):
        check_weights(file, whole=whole, alone=len(names) == 1)


def read_table(file: BinaryIO, most: int, otherwise: str) -> dict[str, Any]:
    """Read a JSON object; what cannot be read as one is told in these words."""
    try:
        found = json.loads(file.read(most))
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict):
        return found
    raise ValueError(otherwise)


def size_by_header(file: BinaryIO) -> int:
    """Return how long the header of a safetensors file says that it is."""
    no_header = "no safetensors file, or not yet written: it has no header of that format"
    length = int.from_bytes(file.read(8), "little")
    header = read_table(file, min(length, MAX_HEADER), no_header)
    try:
        ends = [each["data_offsets"][1] for name, each in header.items() if name != "__metadata__"]
    except (TypeError, LookupError):
        raise ValueError(no_header) from None
    if not all(isinstance(end, int) for end in ends):
        raise ValueError(no_header)
    return 8 + length + max(ends, default=0)


def logged(marker: BinaryIO, step: int, metric: str) -> list[float]:
    """Return what a trainer logged as the metric at the step; what cannot be read, tells nothing."""
    try:
        log = json.loads(marker.read(MAX_JSON))["log_history"]
        return [float(entry[metric]) for entry in log if entry.get("step") == step and metric in entry]
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError):
        return []


def log_places(output: int) -> Iterator[str]:
    """Yield where a training log may lie below an output folder: beside or in checkpoints, where CSVLogger writes."""
    yield from (MARKER, CSV)
    with os.scandir(output) as names:
        folders = [each.name for each in islice(names, MAX_NAMES)]
    yield from (f"{name}/{MARKER}" for name in folders if CHECKPOINT.fullmatch(name))
    if CSV_RUNS in folders:
        with suppress(Refusal, OSError), os.scandir(enter(output, CSV_RUNS)) as names:
            runs = [each.name for each in islice(names, MAX_NAMES) if CSV_RUN.fullmatch(each.name)]
            yield from (f"{CSV_RUNS}/{name}/{CSV}" for name in runs)


def newest_log(places: Iterable[tuple[int, str]], since_s: int) -> tuple[int, str]:
    """Return the newest of these files that was written since a moment, as a folder and a path below it.

    A table counts only where there is no log of the trainer's own: scripts write files of that name, too. What lies
    there is only ranked here: it is judged when it is opened.
    """
    found = []
    for folder, path in places:
        with suppress(OSError):
            written_ns = os.lstat(path, dir_fd=folder).st_mtime_ns
            if written_ns >= since_s * 10**9:
                found.append((path.endswith(MARKER), written_ns, path, folder))
    if not found:
        raise Missing("missing", f"no {MARKER} or {CSV} written since the job's present life began")
    *_, path, folder = max(found)
    return folder, path


def series_of(name: str, text: bytes, metric: str) -> dict[str, list[tuple[int, float]]]:
    """Return what a trainer logged as the metric and, with it, of its noise: (step, value) by name."""
    found: dict[str, list[tuple[int, float]]] = {}
    try:
        for entry in rows_of(text, metric) if name == CSV else json.loads(text)["log_history"]:
            step = entry.get("step") if metric in entry else None
            if type(step) is not int or not 0 <= step < 10**15:
                continue
            for key in filter(partial(tells, metric), entry):
                if math.isfinite(value := float(entry[key])):
                    found.setdefault(key, []).append((step, value))
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError, csv.Error):
        raise Refusal("incomplete", f"no readable log in {name}") from None
    return found


def rows_of(text: bytes, metric: str) -> Iterator[dict[str, Any]]:
    """Yield the lines of a table, empty cells left out. The last line may be half written: it has no end yet."""
    lines = csv.reader(io.StringIO(text[: text.rfind(b"\n") + 1].decode(), newline=""))
    names = next(lines, [])
    wanted = [(at, name) for at, name in enumerate(names) if name == "step" or tells(metric, name)]
    for line in lines:
        filled = ((name, line[at]) for at, name in wanted if at < len(line) and line[at])
        yield {name: int(cell) if name == "step" else cell for name, cell in filled}


def tells(metric: str, name: str) -> bool:
    """Whether what is logged by that name is the metric, or tells of its noise."""
    return name == metric or (name.endswith(LOGGED_BESIDE) and name.isprintable() and len(name) <= MAX_NAME)


def check_weights(file: BinaryIO, *, whole: bool, alone: bool) -> None:
    """Raise something if a file of weights is empty or, being a zip, has no directory or a wrong CRC.

    What is compressed is not read: trainers store, and a small file may unfold to any size. A checkpoint of one file
    must be a zip, whose directory is written last: nothing else tells that it is whole.
    """
    start = file.read(4)
    if not start:
        raise ValueError("empty")
    if start != b"PK\3\4":
        if alone:
            raise ValueError("no zip as torch.save writes it: nothing tells whether it is whole")
        return
    archive = zipfile.ZipFile(file)
    stored = all(member.compress_type == zipfile.ZIP_STORED for member in archive.infolist())
    if whole and stored and archive.testzip():
        raise ValueError("a wrong CRC")


def link_all(source: Source, target: int) -> None:
    """Link every file below into the target, as fast as may be: the trainer may be deleting them."""
    for inside, prefix, folders, files in walk(source.folder, only=source.only):
        for name in folders:
            os.mkdir(prefix + name, 0o700, dir_fd=target)
        for name in files:
            with open_file(inside, name) as file:
                link_or_copy(file.fileno(), prefix + name, target)


def link_or_copy(file: int, name: str, target: int) -> None:
    """Link the open inode itself, or copy it where links do not reach."""
    try:  # with a dir fd this is linkat(AT_SYMLINK_FOLLOW), without it link(2), which does not follow /proc
        os.link(f"/proc/self/fd/{file}", name, dst_dir_fd=target, follow_symlinks=True)
    except OSError as error:
        if error.errno not in NOT_LINKABLE:
            raise
        copy = os.open(name, WRITE, 0o600, dir_fd=target)
        while os.sendfile(copy, file, None, 2**30):
            pass
        os.close(copy)


def remove(folder: int, name: str) -> None:
    """Remove a file or link, or a tree, sealed or not."""
    if not stat.S_ISDIR(os.lstat(name, dir_fd=folder).st_mode):
        return os.unlink(name, dir_fd=folder)
    for inside, _, _, _ in walk(enter(folder, name)):
        os.fchmod(inside, 0o700)
    return shutil.rmtree(name, dir_fd=folder)


class Pin:
    """One step's pin; this process is its owner."""

    def __init__(self, asked: Request) -> None:
        *above, name = asked.output_dir.split("/")[1:]
        self.asked, self.step = asked, f"step-{asked.step}"
        self.draft, self.manifest = f".tmp-{self.step}", f"{self.step}.json"
        self.listed, self.aside = f".tmp-{self.manifest}", f".old-{self.step}"
        self.above, path = os.open("/", PASS), "/" + "/".join(above)
        for part in above:
            self.above = enter(self.above, part, PASS)
        self.place = self.above
        if os.fstat(self.above).st_uid != asked.uid:
            self.place, path = enter(self.above, name), asked.output_dir
        self.path = f"{path.rstrip('/')}/.evalstop/{asked.pin}"

    def pin(self) -> dict[str, Any]:
        """Make the pin, unless it is there and unchanged."""
        with suppress(Missing):
            return self.verify()
        return self.repin()

    def repin(self) -> dict[str, Any]:
        """Make the pin of what is saved now, in place of an earlier one, which stays while there is nothing new."""
        source = find(enter(self.above, self.asked.output_dir.split("/")[-1]), self.asked.step)
        before = listing(source.folder, self.asked, source.only)
        self._require_ours(source, before)
        home = self._home(make=True)
        self._settle(home)
        try:
            entries = self._draft(home, source, before)
            self._put(home)
        finally:
            self._settle(home)
        os.fsync(home)
        return self._answer(entries)

    def _put(self, home: int) -> None:
        """Give the draft its name. Where a kill ends this, `_settle` goes on, or back while the manifest is the old."""
        if self.step in list_anew(home):
            os.rename(self.step, self.aside, src_dir_fd=home, dst_dir_fd=home)
        os.rename(self.listed, self.manifest, src_dir_fd=home, dst_dir_fd=home)
        os.rename(self.draft, self.step, src_dir_fd=home, dst_dir_fd=home)

    def _settle(self, home: int) -> None:
        """Remove what is no pin yet, or no more; what was set aside for a pin that did not come is the pin again."""
        there = set(list_anew(home))
        if self.aside in there and self.step not in there:
            whole = self.draft in there and self.listed not in there
            os.rename(self.draft if whole else self.aside, self.step, src_dir_fd=home, dst_dir_fd=home)
        for name in {self.draft, self.listed, self.aside} & set(list_anew(home)):
            remove(home, name)

    def _draft(self, home: int, source: Source, before: list[Entry]) -> list[Entry]:
        """Make all but the names: the folder and the manifest under others."""
        os.mkdir(self.draft, 0o700, dir_fd=home)
        entries = self._fill(source, enter(home, self.draft), before)
        with open(os.open(self.listed, WRITE, 0o600, dir_fd=home), "w", encoding="ascii") as text:
            json.dump(entries, text)
            text.flush()
            os.fsync(text.fileno())
        return entries

    def _require_ours(self, source: Source, entries: list[Entry]) -> None:
        """Refuse another checkpoint under the same name: one complete too early, or with another score in its log.

        Trainers that evaluate before they save log the step's evals in the marker; others do not, which is fine.
        """
        if source.completed_ns(entries) < self.asked.since_s * 10**9:
            raise Refusal("incomplete", "complete since before the step was evaluated: another checkpoint")
        if MARKER in {entry.path for entry in entries}:
            with open_file(source.folder, MARKER) as file:
                scores = logged(file, self.asked.step, self.asked.metric)
            if scores and not any(math.isclose(score, self.asked.score, rel_tol=1e-6) for score in scores):
                raise Refusal("incomplete", "the trainer's log has another score for the step: another checkpoint")

    def _fill(self, source: Source, target: int, before: list[Entry]) -> list[Entry]:
        """Link first, sync last: any other order loses the race with a trainer that rotates."""
        link_all(source, target)
        entries = listing(target, self.asked)
        sizes = [entry[:2] for entry in entries]
        if listing(source.folder, self.asked, source.only) != before or sizes != [entry[:2] for entry in before]:
            raise Refusal("incomplete", "the checkpoint changed while it was pinned")
        source.require_complete(self.asked.step, self.asked.later, entries)
        require_whole(target, entries, "incomplete")
        if listing(target, self.asked) != entries:
            raise Refusal("incomplete", "still being written")
        return entries

    def verify(self) -> dict[str, Any]:
        """Compare the pin with its manifest, and look whether it is whole."""
        home = self._home()
        if self.step not in list_anew(home):
            self._settle(home)
        folder = enter(home, self.step)
        entries = listing(folder, self.asked)
        if odd := set(entries) ^ set(self._recorded(home)):
            raise Refusal("changed", f"not as pinned: {min(odd).path}")
        require_whole(folder, entries, "changed")
        return self._answer(entries)

    def publish(self) -> dict[str, Any]:
        """Let `best` point to the pin, after verifying it."""
        answer, home = self.verify(), self._home()
        if ".tmp-best" in list_anew(home):
            remove(home, ".tmp-best")
        os.symlink(self.step, ".tmp-best", dir_fd=home)
        os.rename(".tmp-best", "best", src_dir_fd=home, dst_dir_fd=home)
        os.fsync(home)
        return answer | {"path": f"{self.path}/best"}

    def drop(self) -> dict[str, Any]:
        """Remove the pin and what it left; nothing there is fine. Under its name the pin is always whole."""
        try:
            home = self._home()
        except Missing:
            return self._answer([])
        self._settle(home)
        there = set(list_anew(home))
        entries = self._recorded(home) if self.step in there else []
        if "best" in there and os.readlink("best", dir_fd=home) == self.step:
            remove(home, "best")
        if self.step in there:
            os.rename(self.step, self.draft, src_dir_fd=home, dst_dir_fd=home)
        for name in {self.draft, self.manifest} & set(list_anew(home)):
            remove(home, name)
        os.fsync(home)
        return self._answer(entries)

    def log(self) -> dict[str, Any]:
        """Read the newest training log of the job's present life."""
        last = self.asked.output_dir.split("/")[-1]
        output = enter(self.above, last)
        places = [(output, path) for path in log_places(output)]
        if last == CSV_CHECKPOINTS and os.fstat(self.above).st_uid == self.asked.uid:
            places.append((self.above, CSV))
        at, path = newest_log(places, self.asked.since_s)
        *folders, name = path.split("/")
        shown = path if at == output else f"../{path}"
        for folder in folders:
            at = enter(at, folder)
        with open_file(at, name) as file:
            fresh = os.fstat(file.fileno()).st_mtime_ns >= self.asked.since_s * 10**9
            text = file.read(MAX_JSON + 1)
        if not fresh or len(text) > MAX_JSON:
            raise Refusal("refused", f"{shown} has more than {MAX_JSON} bytes, or was changed meanwhile")
        series = series_of(name, text, self.asked.metric)
        answer = {"ok": True, "file": shown, "digest": hashlib.sha256(text).hexdigest(), "series": series}
        if len(json.dumps(answer)) > MAX_ANSWER:
            raise Refusal("refused", f"{shown} has more evals than an answer holds")
        return answer

    def _home(self, *, make: bool = False) -> int:
        """Open, or make, the folder that holds the job's pins."""
        folder = self.place
        for name in (".evalstop", self.asked.pin):
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=folder)
            folder = enter(folder, name)
        return folder

    def _recorded(self, home: int) -> list[Entry]:
        """Read the manifest."""
        try:
            with open_file(home, self.manifest) as file:
                return [Entry(*row) for row in json.loads(file.read(MAX_JSON))]
        except (FileNotFoundError, ValueError, TypeError, RecursionError):
            raise Refusal("changed", f"no readable {self.manifest} beside the pin") from None

    def _answer(self, entries: list[Entry]) -> dict[str, Any]:
        digest = hashlib.sha256(json.dumps(entries).encode()).hexdigest()
        size = sum(entry.size for entry in entries)
        path = f"{self.path}/{self.step}"
        return {"ok": True, "path": path, "files": len(entries), "bytes": size, "manifest": digest}


def refusal(kind: str, why: str) -> dict[str, Any]:
    """Compose an answer of one printable line."""
    line = "".join(char if " " <= char <= "~" else "?" for char in why)[:400]
    return {"ok": False, "kind": kind, "why": line}


def work(asked: Request) -> dict[str, Any]:
    """Do what was asked, as its owner or not at all."""
    try:
        if os.geteuid() != asked.uid or asked.uid == 0:
            raise Refusal("refused", "not the owner's process")
        return getattr(Pin(asked), asked.verb)()  # type: ignore[no-any-return]
    except Refusal as no:
        return refusal(*no.args)
    except FileNotFoundError:
        return refusal(
            "incomplete" if asked.verb in ("pin", "repin", "log") else "changed", "a file vanished meanwhile"
        )
    except OSError as error:
        kind = "refused" if error.errno in FORBIDDEN else "failed"
        return refusal(kind, f"{error.strerror}{f': {error.filename}' if error.filename else ''}")
    except Exception as error:  # noqa: BLE001 - whatever it is, the peer gets an answer
        return refusal("failed", repr(error))


if __name__ == "__main__":
    answer = work(Request(**json.loads(os.read(int(sys.argv[1]), MAX_REQUEST))))
    os.write(sys.stdout.fileno(), json.dumps(answer).encode())
