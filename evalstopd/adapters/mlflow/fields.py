"""Reads one field of MLflow's JSON at a time: what has the wrong type makes the answer unusable, never a crash."""

import re
from collections.abc import Mapping

from evalstopd.errors import Unavailable

_INT64 = range(-(2**63), 2**63)
_INTEGER = re.compile(r"-?[0-9]{1,19}", re.ASCII)
_NOT_FINITE = ("NaN", "Infinity", "-Infinity")


def mapping(value: object, what: str) -> Mapping[str, object]:
    """Return a JSON object. Raises Unavailable."""
    if not isinstance(value, dict):
        raise _unusable(what)
    return value


def items(value: object, what: str) -> list[object]:
    """Return a JSON array; an absent one is empty, as protobuf writes it. Raises Unavailable."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise _unusable(what)
    return value


def text(value: object, what: str) -> str:
    """Return a string; an absent one is empty. Raises Unavailable."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _unusable(what)
    return value


def int64(value: object, what: str) -> int:
    """Return an integer of 64 bits, also one in a string as protobuf's own JSON has it. Raises Unavailable."""
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        value = int(value)
    if type(value) is not int or value not in _INT64:
        raise _unusable(what)
    return value


def number(value: object, what: str) -> float:
    """Return a float, NaN and infinities included, bare or as strings. Raises Unavailable."""
    # Nearly all values: answers of thousands of runs are long.
    if type(value) is float:
        return value
    if isinstance(value, str) and value in _NOT_FINITE:
        return float(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise _unusable(what)
    try:
        return float(value)
    except OverflowError as error:
        raise _unusable(what) from error


def _unusable(what: str) -> Unavailable:
    return Unavailable(f"MLflow's answer has no usable {what}")
