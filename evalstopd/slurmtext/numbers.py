"""Numbers in files that people hand over: finite and not negative, or told with their place."""

from math import isfinite

from evalstopd.errors import Misconfigured


def number(text: str, what: str, where: str) -> float:
    """Read a finite number that is not negative. Raises Misconfigured naming file and line."""
    try:
        value = float(text)
    except ValueError:
        raise Misconfigured(f"{where}: {what} is not a number: {text[:40]!a}") from None
    if not isfinite(value) or value < 0:
        raise Misconfigured(f"{where}: {what} must be finite and not negative, not {text[:40]!a}")
    return value
