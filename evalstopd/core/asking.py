"""When Slurm is asked again to end a job: ever more rarely, and most rarely where it refused."""

from hashlib import sha256

_FIRST_S = 30.0
_REFUSED_S = 300.0
_LONGEST_S = 900.0
_JITTER = 0.25


def pause_s(name: str, tries: int, refusals: int) -> float:
    """Return how long to wait after the last request, in seconds: 15 minutes at most.

    A first request that was lost is put again by the next pass; after that the pause doubles, from half a minute on. A
    refusal stands until an admin does something. Up to a quarter is taken off by lot, drawn from the stop's name, so
    that many stops do not ask in the same passes for ever.
    """
    pause = _doubled(_REFUSED_S, refusals - 1) if refusals else _doubled(_FIRST_S, tries - 2)
    return pause * (1.0 - _JITTER * _drawn(f"{name} {tries} {refusals}"))


def _doubled(first_s: float, times: int) -> float:
    return 0.0 if times < 0 else min(first_s * 2.0 ** min(times, 20), _LONGEST_S)


def _drawn(name: str) -> float:
    digest = sha256(name.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:4]) / 2**32
