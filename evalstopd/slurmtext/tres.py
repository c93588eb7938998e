"""GPUs in a TRES text, however Slurm writes them."""

import re
from functools import lru_cache

_COUNT = re.compile(r"([0-9]+)([KMG]?)")
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


@lru_cache(maxsize=1_000)
def count_gpus(text: str) -> int:
    """Return the GPUs that a TRES text names: `cpu=2,gres/gpu=1`, `gres:gpu:a100:2`, `gres/gpu:1`, `N/A`.

    Where a total stands beside counts by type (`gres/gpu=3,gres/gpu:a100=3`) the total counts alone.
    """
    total, typed = 0, 0
    for entry in text.split(","):
        words = re.split("[:=]", re.sub("^gres[:/]", "", entry.partition("(")[0]))
        if words[0] != "gpu":
            continue
        if len(words) <= 2:
            total += _count(words[-1])
        else:
            typed += _count(words[-1])
    return max(total, typed)


def _count(word: str) -> int:
    found = _COUNT.fullmatch(word)
    return int(found[1]) * _UNITS[found[2]] if found else 1
