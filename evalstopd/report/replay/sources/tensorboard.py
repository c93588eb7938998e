"""TensorBoard event files (OpenRLHF and others that log nowhere else), read without TensorBoard.

The two formats needed are small: records framed by length (TFRecord), and a few fields of the protobuf message
Event (tensorflow/core/util/event.proto, framework/summary.proto, framework/tensor.proto).
"""

import struct
from collections.abc import Iterator
from pathlib import Path

from evalstopd.core.model import Point
from evalstopd.report.replay.history import History
from evalstopd.report.replay.sources.series import Origin, Pick, histories
from evalstopd.report.replay.sources.walk import files_below

MARK = "tfevents"
_LARGEST_RECORD = 16 * 1024 * 1024
_HEAD, _FOOT = 12, 4  # length and its checksum before a record, the record's checksum after it
_STEP, _SUMMARY, _WALL = 2, 5, 1
_VALUE = 1
_TAG, _SIMPLE, _TENSOR = 1, 2, 8
_DTYPE, _CONTENT, _FLOATS, _DOUBLES = 1, 4, 5, 6
_FORMATS = {1: "<f", 2: "<d"}

_Field = tuple[int, int | bytes]


def read_event_files(folder: Path, pick: Pick) -> Iterator[History]:
    """Yield the histories of each folder with event files; a file's broken end (a killed writer) ends that file."""
    runs: dict[Path, list[Path]] = {}
    for path in files_below(folder, lambda name: MARK in name):
        runs.setdefault(path.parent, []).append(path)
    for run, paths in sorted(runs.items()):
        series: dict[str, list[Point]] = {}
        for path in paths:
            for key, point in scalars(path.read_bytes()):
                series.setdefault(key, []).append(point)
        name = str(run.relative_to(folder)) if run != folder else folder.name
        yield from histories(Origin(name, folder.name, "tensorboard", timed=True), series, pick)


def scalars(data: bytes) -> Iterator[tuple[str, Point]]:
    """Yield the scalars of an event file's bytes; what is no scalar, or broken, is passed over."""
    for record in records(data):
        try:
            yield from _event(record)
        except (ValueError, struct.error, UnicodeDecodeError):
            continue


def records(data: bytes) -> Iterator[bytes]:
    """Yield whole records; the first one that cannot be whole ends the file."""
    at = 0
    while at + _HEAD <= len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        end = at + _HEAD + length
        if length > _LARGEST_RECORD or end + _FOOT > len(data):
            return
        yield data[at + _HEAD : end]
        at = end + _FOOT


def _event(record: bytes) -> Iterator[tuple[str, Point]]:
    step, wall_s, values = 0, 0.0, list[bytes]()
    for number, value in fields(record):
        if number == _STEP and isinstance(value, int):
            step = value
        elif number == _WALL and isinstance(value, bytes):
            wall_s = struct.unpack("<d", value)[0]
        elif number == _SUMMARY and isinstance(value, bytes):
            values += [each for inner, each in fields(value) if inner == _VALUE and isinstance(each, bytes)]
    for each in values:
        tag, score = _scalar(each)
        if score is not None and step < 1 << 62:
            yield tag, Point("", step, score, _milliseconds(wall_s))


def _milliseconds(wall_s: float) -> int:
    return int(wall_s * 1000) if 0 <= wall_s < 1e12 else 0


def _scalar(value: bytes) -> tuple[str, float | None]:
    tag, score = "", None
    for number, content in fields(value):
        if not isinstance(content, bytes):
            continue
        if number == _TAG:
            tag = content.decode()
        elif number == _SIMPLE:
            score = struct.unpack("<f", content)[0]
        elif number == _TENSOR:
            score = _tensor(content)
    return tag, score


def _tensor(message: bytes) -> float | None:
    """Return the one number of a tensor of floats or doubles, None for any other tensor."""
    found: dict[int, int | bytes] = dict(fields(message))
    form = _FORMATS.get(int(found.get(_DTYPE, 0)))
    content = found.get(_CONTENT) or found.get(_FLOATS) or found.get(_DOUBLES)
    if form is None or not isinstance(content, bytes) or len(content) != struct.calcsize(form):
        return None
    return float(struct.unpack(form, content)[0])


def fields(message: bytes) -> Iterator[_Field]:
    """Yield number and value of a message's fields, numbers as int, all else as bytes. ValueError if broken."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(message, at)
            yield key >> 3, value
            continue
        if kind == 2:
            size, at = _varint(message, at)
        else:
            size = {1: 8, 5: 4}.get(kind, -1)
        if size < 0 or at + size > len(message):
            raise ValueError("not a protobuf message")
        yield key >> 3, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(message):
            break
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError("not a protobuf number")
