"""Numbers in files that people hand over: finite and not negative, or told with their place."""

from math import isfinite

from evalstopd.errors import WrongUsage


def number(text: str, what: str, where: str) -> float:
    """Read a finite number that is not negative. Raises WrongUsage naming file and line."""
    try:
        value = float(text)
    except ValueError:
        raise WrongUsage(f"{where}: {what} is not a number: {text[:40]!a}") from None
    if not isfinite(value) or value < 0:
        raise WrongUsage(f"{where}: {what} must be finite and not negative, not {text[:40]!a}")
    return value
