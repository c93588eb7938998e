"""How often Python looks for garbage: a pass makes a hundred thousand objects, and hardly a cycle among them."""

import gc

_NEW_OBJECTS = 20_000


def collect_rarely() -> None:
    """Look only after so many new objects, and never again at what was made until now.

    With Python's own 700 a quarter of a pass over 10,000 jobs goes into looking (`make bench-queue`).
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, 20, 20)
