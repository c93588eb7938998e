"""Users' text on its way to a terminal, a log or a file: it may hold anything, and must do nothing."""

import shlex


def plain(text: str, most: int = 200) -> str:
    """Return text in which every character that could act (escapes, newlines, direction marks) is spelled out."""
    spelled = "".join(c if c.isprintable() else _spelled(c) for c in text[: most + 1])
    return spelled if len(text) <= most else f"{spelled[: most - 1]}…"


def of_dataset(dataset: str) -> str:
    """Return which dataset's evals those of a metric are, to stand behind its name; empty where it is told of none."""
    return f" of dataset {plain(dataset, 80)}" if dataset else ""


def shell_word(text: str) -> str:
    """Return text as one word of a shell's command line, without any character that could act on a terminal.

    Where there is such a one the word is of the form $'...', which bash, ksh and zsh read.
    """
    if text.isprintable():
        return shlex.quote(text)
    return "$'" + "".join(c if c.isalnum() and c.isascii() else _as_bytes(c) for c in text) + "'"


def _as_bytes(character: str) -> str:
    try:
        held = character.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        held = character.encode("utf-8", "surrogatepass")
    return "".join(f"\\x{byte:02x}" for byte in held)


def _spelled(character: str) -> str:
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")
