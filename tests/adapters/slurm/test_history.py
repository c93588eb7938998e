"""What ended within a span, from sacct: whatever names hold, each record is its job's, and nothing half is believed."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstopd.adapters.slurm.cluster import SlurmCluster
from evalstopd.adapters.slurm.run import Answer
from evalstopd.core.estimates import PastLife
from evalstopd.errors import Unavailable
from evalstopd.ports import Span

DAY = 1796000000
SPAN = Span(DAY, DAY + 1000.0)
FORGED = "x\nbob|root|ml|9|1|1|1|1|COMPLETED\n"


class FakeSacct:
    """Prints records with the delimiter that it is asked for, each `(name, end, state)`."""

    def __init__(self, *records: tuple[str, str, str], tail: str = "", code: int = 0) -> None:
        self.records, self.tail, self.code = records, tail, code
        self.argv: list[Sequence[str]] = []

    def __call__(self, argv: Sequence[str], env: Mapping[str, str]) -> Answer:
        self.argv.append(argv)
        word = next(each.removeprefix("--delimiter=") for each in argv if each.startswith("--delimiter="))
        rows = (
            (name, "alice", "ml", "7", str(DAY - 100), end, "600", "60", state) for name, end, state in self.records
        )
        return Answer(self.code, "".join(word.join(row) + "\n" for row in rows) + self.tail, "")


def ended(sacct: FakeSacct) -> list[PastLife]:
    return list(SlurmCluster(run=sacct).ended(SPAN))


def test_a_record_becomes_a_past_life() -> None:
    assert ended(FakeSacct(("train", str(DAY + 500), "CANCELLED by 1003"))) == [
        PastLife("alice", "ml", "train", 3600.0, 600.0, "CANCELLED", DAY + 500.0, DAY - 100.0)
    ]


@given(st.lists(st.text(st.characters(codec=None), max_size=40), min_size=1, max_size=5))
def test_no_name_changes_another_record(names: list[str]) -> None:
    records = [(name, str(DAY + 500), "COMPLETED") for name in (*names, FORGED)]

    assert [each.name for each in ended(FakeSacct(*records))] == [*names, FORGED]


def test_only_what_ended_within_the_span_counts_so_that_spans_can_follow_one_another() -> None:
    ends = {"a": DAY - 1, "b": DAY, "c": DAY + 1000, "d": "Unknown"}
    records = [(name, str(end), "REQUEUED") for name, end in ends.items()]

    assert [each.name for each in ended(FakeSacct(*records))] == ["b"]


def test_one_call_whose_word_nobody_can_guess() -> None:
    sacct = FakeSacct()
    ended(sacct)
    ended(sacct)
    first, second = ({each for each in argv if each.startswith("--delimiter=")} for argv in sacct.argv)

    assert len(sacct.argv) == 2
    assert first != second
    assert {f"--starttime=uts{DAY}", f"--endtime=uts{DAY + 1000}", "--allusers"} <= set(sacct.argv[0])


@pytest.mark.parametrize(
    "sacct",
    [
        FakeSacct(("a", str(DAY + 500), "COMPLETED"), tail="half"),
        FakeSacct(("a", "soon", "COMPLETED")),
        FakeSacct(code=1),
    ],
)
def test_what_is_not_whole_is_no_answer(sacct: FakeSacct) -> None:
    with pytest.raises(Unavailable):
        ended(sacct)
