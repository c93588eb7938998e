"""Node list expressions become names, whatever they hold and however many they are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstopd.adapters.slurm.nodes import expand

LISTS = {
    "": (),
    "(null)": (),
    "N/A": (),
    "n0": ("n0",),
    "n[0-3,7],m1": ("n0", "n1", "n2", "n3", "n7", "m1"),
    "n[001-003]": ("n001", "n002", "n003"),
    "n[8-11]": ("n8", "n9", "n10", "n11"),
    "n[08-11]": ("n08", "n09", "n10", "n11"),
    "rack[0-1]n[1-2]": ("rack0n1", "rack0n2", "rack1n1", "rack1n2"),
    "gpu-[1-2]-ib": ("gpu-1-ib", "gpu-2-ib"),
    "a,b,c": ("a", "b", "c"),
    "n[3]": ("n3",),
    "n[3-1]": (),
    "n[1-": ("n[1-",),
    "n]": ("n]",),
    "n[a-b]": ("n[a-b]",),
    "n[]": ("n[]",),
    ",": (",",),
    "n[0-999999999]": ("n[0-999999999]",),
}


@pytest.mark.parametrize(("expression", "names"), LISTS.items())
def test_an_expression_gives_its_names(expression: str, names: tuple[str, ...]) -> None:
    assert expand(expression) == names


def test_the_number_of_names_is_capped() -> None:
    assert expand("n[0-99]", cap=3) == ("n0", "n1", "n2")
    assert len(expand("n[0-8000]m[0-8000]")) == 8192


@given(st.text(alphabet="n0123456789[]-,", max_size=30))
def test_any_text_gives_names_and_no_error(text: str) -> None:
    assert len(expand(text)) <= 8192
