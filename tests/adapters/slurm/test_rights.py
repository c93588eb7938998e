"""Who may act on the jobs of others, as accounting tells."""

import pytest

from evalstopd.adapters.slurm.rights import is_operator
from evalstopd.adapters.slurm.run import Answer
from evalstopd.errors import Unavailable
from tests.adapters.slurm.fake_slurm import FakeSlurm, failed


def asked(answer: Answer | Exception, uid: int = 1001, user: str = "alice") -> tuple[bool, FakeSlurm]:
    slurm = FakeSlurm(answers={"sacctmgr": answer})
    return is_operator(slurm, uid, user), slurm


@pytest.mark.parametrize(
    ("level", "may"), [("Operator\n", True), ("Administrator\n", True), ("None\n", False), ("", False)]
)
def test_operators_and_administrators_may_and_nobody_else(level: str, may: bool) -> None:
    assert asked(Answer(0, level, ""))[0] is may


@pytest.mark.parametrize("answer", [failed(1, "no slurmdbd"), Unavailable("no answer"), Answer(1, "Operator\n", "")])
def test_without_accounting_nobody_is_an_operator(answer: Answer | Exception) -> None:
    assert asked(answer)[0] is False


def test_root_is_not_asked_about() -> None:
    may, slurm = asked(Answer(0, "None", ""), uid=0, user="root")

    assert may
    assert slurm.seen == []


@pytest.mark.parametrize("user", ["", "alice,root", "a b", "alice\n", "--x=1"])
def test_a_name_that_sacctmgr_would_read_otherwise_is_nobodys(user: str) -> None:
    assert asked(Answer(0, "Operator\n", ""), user=user) == (
        False,
        FakeSlurm(answers={"sacctmgr": Answer(0, "Operator\n", "")}),
    )
