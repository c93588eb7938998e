"""Users' text on its way to a terminal, a log or a file: it may hold anything, and must do nothing."""


def plain(text: str, most: int = 200) -> str:
    """Return text in which every character that could act (escapes, newlines, direction marks) is spelled out."""
    spelled = "".join(c if c.isprintable() else _spelled(c) for c in text[: most + 1])
    return spelled if len(text) <= most else f"{spelled[: most - 1]}…"


def _spelled(character: str) -> str:
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")
