"""The one place where randomness comes from: numbered streams of one seed, apart from each other."""

import random  # noqa: TID251 - seeded streams are what everything else here is handed
from enum import IntEnum

Stream = random.Random


class Draw(IntEnum):
    """What a stream is for. Each use has its own, so that changing one choice leaves all other draws alone."""

    ARRIVALS = 1
    JOBS = 2
    NOISE = 3
    CANCELS = 4
    CURVES = 5


def stream(seed: int, draw: Draw) -> Stream:
    """Return the stream of this seed for this use: the same numbers on every machine and Python."""
    return random.Random(f"evalstopd/{seed}/{int(draw)}")  # noqa: S311 - reproducible on purpose
