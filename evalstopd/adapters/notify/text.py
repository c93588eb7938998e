"""Users' text on its way into a message: one line, in which nothing can act."""


def harmless(text: str, most: int) -> str:
    """Return at most `most` characters of a text, with all that is not printable (newlines, escapes) spelled out."""
    cut = text if len(text) <= most else f"{text[: most - 1]}…"
    return "".join(each if each.isprintable() else _spelled(each) for each in cut)


def _spelled(character: str) -> str:
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")
