"""Time limits as squeue prints them."""

import pytest

from evalstopd.slurmtext.limits import limit_of


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0:30", 30),
        ("10:00", 600),
        ("1:40:00", 6000),
        ("1-02:00:00", 93600),
        ("364-23:59:00", 31535940),
        ("365-00:00:00", None),
        ("400-00:00:00", None),
        ("UNLIMITED", None),
        ("NOT_SET", None),
        ("Partition_Limit", None),
        ("", None),
        ("1:2:3:4", None),
    ],
)
def test_a_limit_is_seconds_or_none(text: str, seconds: int | None) -> None:
    assert limit_of(text) == seconds
