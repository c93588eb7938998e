"""When what did not come (a checkpoint with its eval) is looked for again: a look costs, and it may never come."""

from hashlib import sha256

from evalstopd.core.watch import Pin

_SHARE = 0.1
_LONGEST_WAIT_S = 600.0


def is_sought(pin: Pin, now_s: float, tick_s: float) -> bool:
    """Tell whether to look in the pass at `now_s`: about once in a tenth of the time for which it is missed.

    At least every 10 minutes, at most each tick. Times in seconds. A lot decides, so that the looks for many that were
    missed together are spread over the passes, and nobody need remember the last look.
    """
    return is_time(_name(pin), pin.wanted_s, now_s, tick_s)


def is_time(name: str, since_s: float, now_s: float, tick_s: float) -> bool:
    """Tell the same of whatever is looked for by a name since a moment."""
    wait_s = min(_SHARE * (now_s - since_s), _LONGEST_WAIT_S)
    return wait_s <= tick_s or _drawn(name, now_s) * wait_s < tick_s


def lot(pin: Pin, now_s: float) -> float:
    """Return a number of [0, 1) that is another one in each pass and for each pin."""
    return _drawn(_name(pin), now_s)


def _name(pin: Pin) -> str:
    return f"{pin.key.text} {pin.step}"


def _drawn(name: str, now_s: float) -> float:
    digest = sha256(f"{name} {now_s}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:4]) / 2**32
