"""Texts and numbers as columns: nothing is lost, and every database takes what comes out."""

from hypothesis import given
from hypothesis import strategies as st

from evalstopd.store.columns import escape, unescape
from tests.contracts.store_builders import texts


@given(texts | st.text(alphabet="\\u0041d8f\x00"))
def test_any_text_comes_back_and_fits_utf8_without_nul(text: str) -> None:
    """Lone surrogates and NUL are what UTF-8 and PostgreSQL refuse."""
    assert unescape(escape(text)) == text
    assert b"\x00" not in escape(text).encode()


def test_plain_text_stays_readable() -> None:
    """Whoever looks into the tables with SQL sees names as they are."""
    assert escape("größe 漢 100% 'x'") == "größe 漢 100% 'x'"


def test_text_that_looks_escaped_is_not_mistaken() -> None:
    """A user who writes an escape gets it back as written."""
    assert escape("\\u0000") == "\\\\u0000"
    assert escape("\x00\udcff") == "\\u0000\\udcff"
    assert unescape(escape("\\\\u0000\\")) == "\\\\u0000\\"
