"""Whose run it is: no tag alone proves it, and nobody can make another's job act or be acted on."""

from dataclasses import replace

import pytest

from evalstopd.core.binding import Binding, Bound, Claim, Refused, RunFacts, bind
from evalstopd.core.model import Job, JobKey, Phase


def job(job_id: str, uid: int) -> Job:
    return Job("c", job_id, int(job_id), uid, f"u{uid}", Phase.RUNNING, "RUNNING", 1, 1, 0, 1)


def claim(job_id: str, uid: int, run_id: str = "r") -> Claim:
    one = job(job_id, uid)
    return Claim(JobKey("c", job_id, uid, 1), one, run_id)


def run(tags: dict[str, str] | None = None, deleted: bool = False, maker: str = "") -> RunFacts:
    return RunFacts("r", "RUNNING", deleted, "", tags or {}, {}, maker=maker)


ALICE, BOB = claim("7", 1001), claim("8", 1002)


def test_the_comment_alone_binds_one_way_and_the_runs_tag_makes_it_two() -> None:
    assert bind([ALICE], {"r": run()}, {}) == {ALICE.key: Bound("r", two_way=False)}
    assert bind([ALICE], {"r": run({"slurm.job_id": "7"})}, {}) == {ALICE.key: Bound("r", two_way=True)}


def test_a_tag_of_another_cluster_does_not_name_the_job() -> None:
    tags = {"slurm.job_id": "7", "slurm.cluster": "elsewhere"}

    assert bind([ALICE], {"r": run(tags)}, {}) == {ALICE.key: Bound("r", two_way=False)}


def test_a_run_named_by_two_jobs_belongs_to_the_one_that_it_names_itself() -> None:
    decided = bind([BOB, ALICE], {"r": run({"slurm.job_id": "7"})}, {})

    assert decided[ALICE.key] == Bound("r", two_way=True)
    assert isinstance(decided[BOB.key], Refused)


def test_a_run_named_by_two_jobs_and_naming_neither_is_nobodys() -> None:
    for tags in ({}, {"slurm.job_id": "99"}):
        decided = bind([ALICE, BOB], {"r": run(tags)}, {})

        assert all(isinstance(each, Refused) for each in decided.values())


def held(claimed: Claim, two_way: bool = False) -> dict[str, Binding]:
    return {"r": Binding(claimed.key, "r", "comment", two_way, 1.0)}


def test_a_strangers_run_is_not_taken_over_and_the_same_owners_is() -> None:
    assert isinstance(bind([BOB], {"r": run()}, held(ALICE), living={ALICE.key})[BOB.key], Refused)
    later = claim("9", 1001)
    assert bind([later], {"r": run()}, held(ALICE)) == {later.key: Bound("r", two_way=False, taken_over=True)}


def test_a_one_way_claim_whose_job_is_over_keeps_nobody_from_the_run() -> None:
    """Anybody can name a run once; what is taken over so is marked, so that its points are history."""
    assert bind([BOB], {"r": run()}, held(ALICE)) == {BOB.key: Bound("r", two_way=False, taken_over=True)}


def test_a_run_proven_both_ways_stays_another_owners_when_its_job_is_over() -> None:
    refused = bind([BOB], {"r": run()}, held(ALICE, two_way=True))[BOB.key]

    assert refused == Refused("foreign-run", "the run that the job claims was bound to another owner's job before")


def test_a_stranger_who_may_not_have_the_run_is_no_rival_of_its_holder() -> None:
    decided = bind([ALICE, BOB], {"r": run()}, held(ALICE))

    assert decided[ALICE.key] == Bound("r", two_way=False)
    assert isinstance(decided[BOB.key], Refused)


def test_a_one_way_claim_made_first_yields_to_the_job_that_the_run_names() -> None:
    tags = {"slurm.job_id": "7"}
    decided = bind([ALICE, BOB], {"r": run(tags)}, held(BOB))

    assert decided[ALICE.key] == Bound("r", two_way=True, taken_over=True)
    assert isinstance(decided[BOB.key], Refused)


def test_tags_rewritten_later_do_not_take_a_run_that_was_proven_both_ways() -> None:
    decided = bind([ALICE, BOB], {"r": run({"slurm.job_id": "8"})}, held(ALICE, two_way=True))

    assert decided[ALICE.key] == Bound("r", two_way=False)
    assert isinstance(decided[BOB.key], Refused)


@pytest.mark.parametrize("two_way", [False, True])
@pytest.mark.parametrize("first", [None, ALICE, BOB])
def test_who_made_the_run_has_it_whatever_its_tag_says_and_whoever_had_it_before(
    first: Claim | None, two_way: bool
) -> None:
    holders = held(first, two_way=two_way) if first is not None else {}
    decided = bind([ALICE, BOB], {"r": run({"slurm.job_id": "8"}, maker="u1001")}, holders)

    assert decided[ALICE.key] == Bound("r", two_way=False, taken_over=first is BOB)
    assert decided[BOB.key] == Refused(
        "foreign-run", "the run that the job claims was made by another owner, whose job claims it"
    )


def test_of_two_jobs_of_who_made_the_run_the_one_that_it_names_has_it() -> None:
    later = claim("9", 1001)
    decided = bind([ALICE, later, BOB], {"r": run({"slurm.job_id": "9"}, maker="u1001")}, held(ALICE))

    assert {key: code(found) for key, found in decided.items()} == {
        ALICE.key: "disputed-run", later.key: "bound", BOB.key: "foreign-run",
    }  # fmt: skip


def test_who_made_the_run_keeps_nobody_from_it_without_claiming_it() -> None:
    assert bind([BOB], {"r": run(maker="u1001")}, {}) == {BOB.key: Bound("r", two_way=False)}
    assert bind([ALICE], {"r": run(maker="root")}, {}) == {ALICE.key: Bound("r", two_way=False)}


def test_nobody_without_a_name_made_a_run_that_does_not_say_who_made_it() -> None:
    nameless = replace(ALICE, job=replace(ALICE.job, user=""))
    decided = bind([nameless, BOB], {"r": run()}, {})

    assert {code(each) for each in decided.values()} == {"disputed-run"}


def test_a_deleted_run_binds_nothing() -> None:
    assert isinstance(bind([ALICE], {"r": run(deleted=True)}, {})[ALICE.key], Refused)


def code(found: Bound | Refused) -> str:
    return found.code if isinstance(found, Refused) else "bound"


def test_each_refusal_has_its_own_code_and_a_line_for_the_report() -> None:
    foreign = bind([BOB], {"r": run()}, held(ALICE), living={ALICE.key})[BOB.key]
    deleted = bind([ALICE], {"r": run(deleted=True)}, {})[ALICE.key]
    disputed = bind([ALICE, BOB], {"r": run()}, {})[BOB.key]

    assert [code(each) for each in (foreign, deleted, disputed)] == ["foreign-run", "deleted-run", "disputed-run"]
    assert isinstance(disputed, Refused)
    assert disputed.text.startswith("2 jobs")
    assert isinstance(foreign, Refused)
    assert "another owner" in foreign.text
    assert [each.text.rpartition("; ")[2] for each in (foreign, disputed)] == [
        "it is this job's at once where the run's own tag says so: slurm.job_id=8"
    ] * 2
    assert isinstance(deleted, Refused)
    assert deleted.text.endswith("is deleted")


def test_a_tag_that_leaves_the_cluster_empty_names_the_job() -> None:
    tags = {"slurm.job_id": "7", "slurm.cluster": ""}

    assert bind([ALICE], {"r": run(tags)}, {}) == {ALICE.key: Bound("r", two_way=True)}


def test_a_run_that_nobody_could_read_binds_one_way() -> None:
    assert bind([ALICE], {}, {}) == {ALICE.key: Bound("r", two_way=False)}
    assert code(bind([ALICE, BOB], {}, {})[ALICE.key]) == "disputed-run"


def test_a_job_goes_on_with_its_own_run_and_takes_over_none() -> None:
    assert bind([ALICE], {"r": run()}, held(ALICE)) == {ALICE.key: Bound("r", two_way=False, taken_over=False)}


def test_runs_are_judged_apart() -> None:
    other = claim("9", 1003, "s")
    decided = bind([ALICE, BOB, other], {"r": run()}, {})

    assert [code(decided[each.key]) for each in (ALICE, BOB, other)] == ["disputed-run", "disputed-run", "bound"]
