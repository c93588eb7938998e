"""Seals and tags as proofs: what was not made for this run by this life of this job binds nothing."""

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evalstopd.core.binding import Binding, Bound, Claim, Proof, Refused, RunFacts, Trust, bind, claim_of, proof_of
from evalstopd.core.mac import MAC_TAG, SKEW_S, SiteKey, job_secret, seal
from evalstopd.core.model import Job, JobKey, Phase

KEY, OTHER_KEY = b"k" * 32, b"o" * 32
STARTED_S = 100_000
SEALS, TAGS, BOTH = Trust(SiteKey(KEY)), Trust(tags=True), Trust(SiteKey(KEY), tags=True)
JOB = Job("c", "7", 7, 1001, "alice", Phase.RUNNING, "RUNNING", STARTED_S - 5, STARTED_S, 0, 8)


def key(job: Job) -> JobKey:
    return JobKey(job.cluster, job.job_id, job.uid, job.submitted_s)


def sealed(job: Job, run_id: str, site_key: bytes = KEY, issued_s: int = STARTED_S) -> str:
    return seal(job_secret(site_key, job, str(issued_s)), run_id)


def run(run_id: str = "r", job: Job = JOB, mac: str | None = None, **changes: object) -> RunFacts:
    tags = {"slurm.job_id": str(job.raw_id), "slurm.cluster": job.cluster}
    facts = RunFacts(
        run_id, "RUNNING", False, "alice", tags if mac is None else {**tags, MAC_TAG: mac}, {}, frozenset({"m"}),
        1000 * STARTED_S,
    )  # fmt: skip
    return replace(facts, **changes)  # type: ignore[arg-type]


def claimed(*runs: RunFacts, named: str | None = None, trust: Trust = BOTH, job: Job = JOB) -> object:
    return claim_of(key(job), job, named, "m", runs, trust)


# --- seals

_jobs = st.builds(
    lambda cluster, raw_id, uid, restarts, started: replace(
        JOB, cluster=cluster, raw_id=raw_id, uid=uid, restarts=restarts, started_s=started
    ),
    st.sampled_from(["c", "d", "C1"]),
    st.integers(1, 30),
    st.integers(1000, 1003),
    st.integers(0, 3),
    st.integers(STARTED_S, STARTED_S + 3 * SKEW_S),
)
_run_ids = st.sampled_from(["r", "r1", "R", "0" * 32])


@given(_jobs, _jobs, _run_ids, _run_ids, st.sampled_from([KEY, OTHER_KEY]), st.integers(0, 4 * SKEW_S))
@example(JOB, JOB, "r", "r", KEY, 0)
def test_a_seal_counts_for_its_own_run_and_life_alone(
    maker: Job, reader: Job, made_for: str, seen_in: str, site_key: bytes, later_s: int
) -> None:
    issued_s = STARTED_S + later_s
    tag = sealed(maker, made_for, site_key, issued_s)
    same = (maker.cluster.lower(), maker.raw_id, maker.uid, maker.restarts) == (
        reader.cluster.lower(), reader.raw_id, reader.uid, reader.restarts,
    )  # fmt: skip
    in_time = reader.started_s is not None and issued_s >= reader.started_s - SKEW_S

    assert SiteKey(KEY).sealed(reader, seen_in, tag) == (same and in_time and made_for == seen_in and site_key == KEY)


@given(st.one_of(st.text(), st.from_regex(r"[0-9]{1,12}\.[0-9a-f]{64}", fullmatch=True)), _jobs)
@example("", JOB)
@example(f"{STARTED_S}.{'0' * 64}", JOB)
@example(f"{STARTED_S}.{'٠' * 64}", JOB)
def test_no_text_that_an_outsider_makes_up_is_a_seal(tag: str, job: Job) -> None:
    facts = run(job=job, mac=tag, user="mallory")

    assert proof_of(facts, job, SEALS) is None
    assert claim_of(key(job), job, None, "m", [facts], SEALS) is None


@given(st.integers(0, 75), st.sampled_from("0123456789abcdef."))
def test_a_seal_with_one_letter_changed_is_none(place: int, letter: str) -> None:
    tag = sealed(JOB, "r")
    place %= len(tag)
    forged = tag[:place] + letter + tag[place + 1 :]

    assert SiteKey(KEY).sealed(JOB, "r", forged) == (forged == tag)


def test_a_reused_id_of_the_same_owner_does_not_inherit_the_seal() -> None:
    """Cluster, id, uid and restarts are all the same: when the secret was issued tells the two jobs apart."""
    tag = sealed(JOB, "r", issued_s=STARTED_S + 2)
    later = replace(JOB, submitted_s=STARTED_S + 9_000, started_s=STARTED_S + 9_005)

    assert SiteKey(KEY).sealed(JOB, "r", tag)
    assert not SiteKey(KEY).sealed(later, "r", tag)
    assert not SiteKey(KEY).sealed(replace(JOB, started_s=None), "r", tag)


def test_a_key_is_long_enough_and_never_shown() -> None:
    assert "k" * 8 not in repr(Trust(SiteKey(KEY)))
    with pytest.raises(ValueError, match="32 bytes"):
        SiteKey(b"short")


def test_what_is_no_secret_seals_nothing() -> None:
    for secret in ("", "x", f"{STARTED_S}.{'G' * 64}", f"{STARTED_S}." + "a" * 63):
        with pytest.raises(ValueError, match="no job secret"):
            seal(secret, "r")


# --- tags

_stranger_runs = st.builds(
    lambda run_id, user, job_id, cluster, mac, started: RunFacts(
        run_id,
        "RUNNING",
        False,
        user,
        {"slurm.job_id": job_id, "slurm.cluster": cluster, MAC_TAG: mac},
        {},
        frozenset({"m"}),
        started,
    ),
    _run_ids,
    st.sampled_from(["", "alice", "mallory"]),
    st.sampled_from(["7", "07", "8"]),
    st.sampled_from(["c", ""]),
    st.sampled_from(["", sealed(replace(JOB, uid=1002), "r"), sealed(JOB, "another")]),
    st.sampled_from([None, 0, 1000 * STARTED_S]),
)


@given(st.lists(_stranger_runs, max_size=5), st.sampled_from([SEALS, Trust()]))
def test_on_an_open_server_no_tag_of_whatever_kind_binds(runs: list[RunFacts], trust: Trust) -> None:
    """Forged job ids, users and start times, seals copied from other runs and other owners' jobs."""
    assert claim_of(key(JOB), JOB, None, "m", runs, trust) is None


@given(_stranger_runs)
def test_where_users_are_checked_a_tag_binds_the_owners_own_run_of_this_life(facts: RunFacts) -> None:
    right = (
        facts.user == "alice"
        and (facts.tags["slurm.job_id"], facts.tags["slurm.cluster"]) == ("7", "c")
        and facts.started_ms == 1000 * STARTED_S
    )
    expected = Claim(key(JOB), JOB, facts.run_id, Proof.TAG) if right else None

    assert claimed(facts, trust=TAGS) == expected


def test_a_run_of_an_earlier_life_is_not_this_ones_by_its_tag() -> None:
    requeued = replace(JOB, restarts=1, started_s=STARTED_S + 1_000)

    assert claimed(run(), job=JOB, trust=TAGS) is not None
    assert claimed(run(), job=requeued, trust=TAGS) is None


# --- one run a job, one job a run


def test_comment_before_seal_before_tag_where_they_name_the_same_run() -> None:
    facts = run(mac=sealed(JOB, "r"))

    assert claimed(facts, named="r") == Claim(key(JOB), JOB, "r", Proof.COMMENT)
    assert claimed(facts) == Claim(key(JOB), JOB, "r", Proof.MAC)
    assert claimed(run()) == Claim(key(JOB), JOB, "r", Proof.TAG)


def test_proofs_of_different_runs_are_ambiguous() -> None:
    by_seal, by_tag = run("s", mac=sealed(JOB, "s")), run("t")

    for found in (
        claimed(by_seal, by_tag),
        claimed(by_seal, run("u", mac=sealed(JOB, "u"))),
        claimed(by_seal, named="c"),
        claimed(by_tag, named="c"),
    ):
        assert isinstance(found, Refused)
        assert found.code == "ambiguous-runs"


def test_a_run_without_the_metric_or_deleted_is_no_rival() -> None:
    """A parent of nested runs, say, holds no evals."""
    parent = run("p", mac=sealed(JOB, "p"), metrics=frozenset({"loss"}))
    gone = run("g", mac=sealed(JOB, "g"), deleted=True)

    assert claimed(parent, gone, run(mac=sealed(JOB, "r"))) == Claim(key(JOB), JOB, "r", Proof.MAC)


def test_a_seal_proves_both_ways_and_a_tag_one() -> None:
    facts = run(mac=sealed(JOB, "r"))
    by_seal, by_tag = (Claim(key(JOB), JOB, "r", proof) for proof in (Proof.MAC, Proof.TAG))

    assert bind([by_seal], {"r": facts}, {}, BOTH) == {by_seal.key: Bound("r", two_way=True, proof=Proof.MAC)}
    assert bind([by_tag], {"r": run()}, {}, BOTH) == {by_tag.key: Bound("r", two_way=False, proof=Proof.TAG)}


def test_a_claim_whose_proof_has_gone_is_refused_and_no_rival_of_others() -> None:
    held = Claim(key(JOB), JOB, "r", Proof.MAC)
    bob = replace(JOB, job_id="8", raw_id=8, uid=1002, user="bob")
    named = Claim(key(bob), bob, "r", Proof.COMMENT)
    decided = bind([held, named], {"r": run(mac="overwritten", user="mallory")}, {}, SEALS)

    assert decided[held.key] == Refused("unproven-run", "the run is no longer proven to be the job's")
    assert decided[named.key] == Bound("r", two_way=False)


def test_a_strangers_comment_does_not_take_a_sealed_run() -> None:
    owner = Claim(key(JOB), JOB, "r", Proof.MAC)
    bob = replace(JOB, job_id="8", raw_id=8, uid=1002, user="bob")
    thief = Claim(key(bob), bob, "r", Proof.COMMENT)
    facts = run(mac=sealed(JOB, "r"))
    decided = bind([thief, owner], {"r": facts}, {}, SEALS)

    assert decided[owner.key] == Bound("r", two_way=True, proof=Proof.MAC)
    assert isinstance(decided[thief.key], Refused)


def test_the_seal_of_a_stranger_in_my_run_does_not_take_it_from_me() -> None:
    """On an open server Bob can write a seal of his own job into Alice's run; bound both ways, it stays hers."""
    bob = replace(JOB, job_id="8", raw_id=8, uid=1002, user="bob")
    thief = Claim(key(bob), bob, "r", Proof.MAC)
    facts = run(mac=sealed(bob, "r"))
    holder = Binding(key(JOB), "r", "comment", two_way=True, since_s=1.0)

    assert isinstance(bind([thief], {"r": facts}, {"r": holder}, SEALS)[thief.key], Refused)
