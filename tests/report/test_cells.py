"""Tables for spreadsheets: no text is computed, wherever a program splits it; numbers stay numbers."""

import csv
import io
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstopd.report.cells import cell, write_table
from tests.hostile.texts import is_formula

SIGNS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
SEPARATORS = (";", ",", "|", "\t", "\n", "\r", '"', "; ", ';"')
LINK = 'HYPERLINK("http://evil.example","click")'


def parts(text: str) -> list[str]:
    """Return what any spreadsheet program may take for a cell of its own."""
    return re.split(r'[;,|"\t\r\n]', text)


def table(*lines: list[object]) -> str:
    out = io.StringIO()
    write_table(out, lines)
    return out.getvalue()


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("before", ["", "  ", "\t", "\r", "\n"])
def test_a_text_that_begins_like_a_formula_gets_an_apostrophe(before: str, sign: str) -> None:
    assert str(cell(f"{before}{sign}1")).startswith("'")


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("separator", SEPARATORS)
def test_a_formula_after_whatever_a_program_splits_at_is_none(separator: str, sign: str) -> None:
    found = str(cell(f"x{separator}{sign}{LINK};y"))

    assert not any(map(is_formula, parts(found)))
    assert re.search(rf"' *{re.escape(sign)}HYPERLINK\(", found)


@pytest.mark.parametrize("separator", [";", "|"])
def test_a_job_name_makes_no_formula_where_a_program_splits_at_another_sign(separator: str) -> None:
    """Excel splits at semicolons in many locales, and then takes the quotes of our cells for text."""
    text = table(["1", f"x{separator}={LINK}{separator}y", -0.5])
    read = csv.reader(io.StringIO(text), delimiter=separator)

    assert not any(is_formula(each) for line in (*read, text.rstrip("\n").split(separator)) for each in line)


@given(
    st.text(st.one_of(st.sampled_from("=+-@;,|\"'\t\n\r \uff1d"), st.characters(exclude_categories=())), max_size=20)
)
def test_no_text_becomes_a_formula_or_a_line_of_its_own(text: str) -> None:
    """Whatever is written, a spreadsheet sees printable parts that are not computed, quoted in one line."""
    found, line = str(cell(text)), table([text]).rstrip("\n")

    assert found.isprintable()
    assert not any(map(is_formula, parts(found)))
    assert (line[0], line[-1]) == ('"', '"')
    assert list(csv.reader([line])) == [[found]]


@given(st.lists(st.text(st.sampled_from('=+-@;,|"\\\t\n x'), max_size=8), max_size=4))
def test_the_texts_of_a_list_are_no_formulas_and_it_stays_json(texts: list[str]) -> None:
    found = str(cell(texts))

    assert not any(map(is_formula, parts(found)))
    assert [each.replace("'", "") for each in json.loads(found)] == texts


def test_numbers_stay_numbers_in_the_spreadsheet() -> None:
    """Only texts are guarded: a negative score must not turn into one."""
    assert [cell(each) for each in (-0.5, -3, None, True, [-0.5, None])] == [-0.5, -3, "", "yes", "[-0.5, null]"]
    assert table(["a", -0.5, None, 7]) == '"a",-0.5,"",7\n'
