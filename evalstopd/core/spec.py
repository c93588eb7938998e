"""The text form of rules and policies: `name:parameter=number,...`."""

from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class Spec:
    """A rule's or policy's name and its numeric parameters, in the order given."""

    name: str
    params: tuple[tuple[str, float], ...] = ()


@lru_cache(maxsize=256)
def parse_spec(text: str) -> Spec:
    """Read `name[:parameter=number,...]`; remembered, for thousands of jobs have the same.

    Raises ValueError naming what is wrong.
    """
    name, _, rest = text.strip().partition(":")
    pairs = [pair.partition("=") for pair in rest.split(",")] if rest else []
    params = tuple((key.strip(), _number(text, value)) for key, _, value in pairs)
    if not name or len({key for key, _ in params}) != len(params):
        raise ValueError(f"{text!r} is not of the form name:parameter=number,... with each parameter once")
    return Spec(name, params)


def _number(text: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise ValueError(f"{text!r}: {value!r} is not a number") from None
