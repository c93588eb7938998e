"""The words of a comment, and which of them are said to us: in any spelling, so that no owner's "no" is overlooked."""

import re
from collections.abc import Iterable, Iterator

_PARTS = re.compile(r"[,;]")
_SIGN = re.compile(r"[=:]")
# The name in a key: after quotes, dashes and the like, or after a prefix (no-evalstop), but not further down a path.
_NAME = re.compile(r"[^\w=:]*(?:\w[^/]*)?evalstop", re.IGNORECASE)
# No repetition below can match where its neighbour does, so that a hostile comment costs no more than its length.
_KEY = r"{}[^\w=:]*[=:][^\w=:]*"
_VETO = re.compile(rf"(?<!\w){_KEY.format('evalstop')}keep(?!\w)", re.IGNORECASE)
_RESTRAINT = re.compile(rf"[^\w=:]*{_KEY.format('evalstop')}(keep|off|observe|warn)[^\w=:]*", re.IGNORECASE)


def words_of(comment: str) -> list[str]:
    """Return the words between spaces, commas and semicolons; `evalstop = off` is one word, with its spaces."""
    return [word for part in _PARTS.split(comment) for word in _joined(part.split())]


def is_ours(word: str) -> bool:
    """Tell whether a word has our name in what stands before its signs (= or :), or is nothing but a name of ours."""
    *keys, last = _SIGN.split(word)
    return any(map(_NAME.match, keys or [last]))


def says_keep(comment: str) -> bool:
    """Tell whether the veto stands anywhere in a comment, however it is spelled."""
    return _VETO.search(comment) is not None


def restraint(word: str) -> str | None:
    """Return the rung, or `keep`, that a word in any spelling clearly holds us to; never one that lets us act."""
    found = _RESTRAINT.fullmatch(word)
    return found[1].lower() if found else None


def has_key(word: str, key: str) -> bool:
    """Tell whether a word gives this key a value, in whatever spelling."""
    return re.match(rf"[^\w=:]*{_KEY.format(re.escape(key))}", word, re.IGNORECASE) is not None


def _joined(pieces: Iterable[str]) -> Iterator[str]:
    """Put together what spaces round a sign part, in words of ours alone."""
    word: list[str] = []
    ours = False
    for piece in pieces:
        if ours and (word[-1][-1] in "=:" or piece[0] in "=:"):
            word.append(piece)
            continue
        if word:
            yield " ".join(word)
        word, ours = [piece], is_ours(piece)
    if word:
        yield " ".join(word)
