"""Who may act on the jobs of others, as accounting tells."""

import pytest

from evalstopd.adapters.slurm.rights import is_operator, is_slurms_own
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


@pytest.mark.parametrize(
    ("answer", "uid", "is_it"),
    [
        (Answer(0, "SlurmUser               = slurm(64030)\nSlurmdUser = root(0)\n", ""), 64030, True),
        (Answer(0, "SlurmUser               = slurm(64030)\nSlurmdUser = root(0)\n", ""), 0, False),
        (Answer(0, "ClusterName = c\n", ""), 64030, False),
        (failed(1, "Unable to contact slurm controller"), 64030, False),
        (Unavailable("late"), 64030, False),
    ],
)
def test_slurms_own_user_is_told_by_the_controller(answer: Answer | Exception, uid: int, is_it: bool) -> None:
    assert is_slurms_own(FakeSlurm(answers={"scontrol": answer}), uid) is is_it
