"""How often Python looks for garbage: a pass makes a hundred thousand objects, and hardly a cycle among them."""

import gc

_NEW_OBJECTS = 20_000


def look_rarely() -> None:
    """Look only after so many new objects: with Python's own 700 a fifth of a command's start goes into looking."""
    gc.set_threshold(_NEW_OBJECTS, 20, 20)


def collect_rarely() -> None:
    """Look rarely, and never again at what was made until now.

    With Python's own 700 a quarter of a pass over 10,000 jobs goes into looking (`make bench-queue`).
    """
    gc.collect()
    gc.freeze()
    look_rarely()
