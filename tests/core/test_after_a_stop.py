"""What follows a stop: who got its GPUs, what an undo owes, and the words for it."""

from dataclasses import replace

import pytest

from evalstopd.core import words
from evalstopd.core.again import Kind, Return
from evalstopd.core.caps import Held
from evalstopd.core.credit import credit_of
from evalstopd.core.handover import handed_to
from evalstopd.core.intent import Evidence, Intent, State
from evalstopd.core.model import Ending, Job, JobKey, Life, Mode, Phase, Rung, StopAction
from evalstopd.core.watch import EarlyWarning, Lived, Pin, PinState, Terms, Watch, in_effect, lived
from evalstopd.core.wishes import Signal, parse_comment

KEY = JobKey("c", "7", 1001, 100)
EVIDENCE = Evidence(
    rule="k-declines:k=2", metric="acc", mode="max", run_id="r", proof="comment", two_way=True, steps=(1, 2, 3),
    scores=(3.0, 2.0, 1.0), trigger_step=3, best_step=1, best_score=2.0 / 3, k_before_step=1, declines=2,
    reason="it fell",
)  # fmt: skip
STOPPED = Intent(
    KEY, Life(0, 100), Rung.ENFORCE, EVIDENCE, created_s=1000.0, not_before_s=1060.0, state=State.CONFIRMED,
    changed_s=9999.0, user="alice", nodes=("n1", "n2"), gpus=4, ending=Ending("CANCELLED", 2000.0), account="ml",
)  # fmt: skip


def other(
    name: str, started_s: int | None, gpus: int = 2, nodes: tuple[str, ...] = ("n1",), phase: str = "running"
) -> Job:
    return Job("c", name, int(name), 1, "u", Phase(phase), "", 1, started_s, 0, gpus, nodes=nodes)


def heirs(*jobs: Job, intent: Intent = STOPPED) -> list[str]:
    return [each.job_id for each in handed_to(intent, jobs)]


def test_the_gpus_go_to_those_who_started_on_its_nodes_since_until_they_are_used_up() -> None:
    assert heirs(other("3", 2100), other("2", 2050), other("1", 2200)) == ["2", "3"]
    assert heirs(other("2", 2000, gpus=3), other("3", 2001, gpus=3), other("4", 2002)) == ["2", "3"]
    assert heirs(other("5", 2000), other("4", 2000), other("3", 2000)) == ["3", "4"], "in the same second by id"


@pytest.mark.parametrize(
    "job",
    [
        other("1", 1999),
        other("1", None),
        other("1", 2000, gpus=0),
        other("1", 2000, nodes=("n3",)),
        other("1", 2000, phase="pending"),
    ],
)
def test_who_started_before_or_elsewhere_or_holds_nothing_got_none(job: Job) -> None:
    assert heirs(job, other("2", 2000, nodes=("n9", "n2"))) == ["2"]


@pytest.mark.parametrize("ending", [None, Ending("UNKNOWN", None)])
def test_nobody_is_named_while_it_is_not_known_when_the_job_ended(ending: Ending | None) -> None:
    assert heirs(other("2", 5000), intent=replace(STOPPED, ending=ending)) == []


def test_an_undone_stop_owes_the_gpu_hours_since_the_kept_checkpoint() -> None:
    """Four GPUs from 200 s to 2,000 s are two GPU-hours."""
    credit = credit_of(replace(STOPPED, kept_s=200.0), 5000.0, "released")

    assert credit.gpu_hours == 2.0
    assert (credit.intent_id, credit.key, credit.user, credit.account) == (STOPPED.id, KEY, "alice", "ml")
    assert (credit.at_s, credit.how) == (5000.0, "released")


def test_without_a_checkpoint_or_with_a_later_one_nothing_is_owed() -> None:
    assert credit_of(STOPPED, 5000.0, "released").gpu_hours == 0.0
    assert credit_of(replace(STOPPED, kept_s=2001.0), 5000.0, "released").gpu_hours == 0.0


@pytest.mark.parametrize("ending", [None, Ending("UNKNOWN", None)])
def test_where_nobody_tells_the_end_the_moment_counts_at_which_it_was_noted(ending: Ending | None) -> None:
    credit = credit_of(replace(STOPPED, kept_s=1000.0, ending=ending, changed_s=2800.0), 5000.0, "released")

    assert credit.gpu_hours == 2.0


def test_a_stop_is_told_as_done_coming_or_only_meant_by_its_rung() -> None:
    warn = replace(STOPPED, rung=Rung.WARN)

    assert words.sentence(STOPPED) == "job 7 is to be stopped at step 3: it fell"
    assert words.sentence(STOPPED, done=True) == "job 7 was stopped at step 3: it fell"
    assert words.sentence(warn) == "job 7 would be stopped at step 3: it fell"


def test_when_it_is_done_counts_from_the_decision() -> None:
    assert words.when(STOPPED) == "not before 60 seconds from the decision"
    assert words.when(replace(STOPPED, not_before_s=1001.0)) == "not before 1 seconds from the decision"
    assert words.when(replace(STOPPED, not_before_s=1000.0)) == "at once"
    assert words.when(replace(STOPPED, not_before_s=0.0)) == "at once"
    assert words.when(replace(STOPPED, rung=Rung.WARN)) == "nothing will be done"
    contradicted = replace(STOPPED.evidence, contradicted="the owner's log says otherwise")
    warned = replace(STOPPED, rung=Rung.WARN, evidence=contradicted)
    assert words.when(warned) == "nothing will be done, for the owner's log says otherwise"


def test_which_checkpoint_was_kept() -> None:
    assert words.kept(STOPPED) == "no checkpoint was published"
    kept = replace(STOPPED, kept_path="/best", evidence=replace(EVIDENCE, chosen_step=2))
    assert words.kept(kept) == "best checkpoint, step 2, kept at /best"
    logged = replace(kept, kept_path="models:/m-1")
    assert words.kept(logged) == f"best checkpoint, step 2: models:/m-1, {words.LOGGED}"


@pytest.mark.parametrize(
    ("path", "kind"), [("", ""), ("/x/models:/m-1", "pinned files"), ("models:/m-1", words.LOGGED)]
)
def test_what_was_kept_is_called_by_its_kind(path: str, kind: str) -> None:
    assert words.kind(path) == kind


def test_the_runs_readers_find_the_stop_in_tags() -> None:
    tags = words.run_tags(replace(STOPPED, kept_path="/best"))

    assert tags == {
        "evalstop.state": "confirmed",
        "evalstop.reason": "it fell",
        "evalstop.rule": "k-declines:k=2",
        "evalstop.metric": "acc",
        "evalstop.trigger_step": "3",
        "evalstop.best_step": "1",
        "evalstop.best_score": "0.666667",
        "evalstop.kept_step": "1",
        "evalstop.checkpoint": "/best",
        "evalstop.checkpoint_kind": "pinned files",
        "evalstop.intent": STOPPED.id,
    }
    of_one = replace(STOPPED, evidence=replace(EVIDENCE, dataset="held-out@9f"))
    assert words.run_tags(of_one)["evalstop.dataset"] == "held-out@9f"
    assert {"evalstop.kept_step", "evalstop.checkpoint"}.isdisjoint(words.run_tags(STOPPED)), "nothing was kept"


@pytest.mark.parametrize(
    ("model", "shown"), [("models:/best/3", "models:/best/3"), ("wanted", None), ("refused", None), ("", None)]
)
def test_the_runs_readers_find_the_registered_model_once_there_is_one(model: str, shown: str | None) -> None:
    assert words.run_tags(replace(STOPPED, model=model)).get("evalstop.model") == shown


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"state": PinState.PINNED, "path": "/p", "why": "late"}, "pinned /p"),
        ({"state": PinState.LOST, "why": "it was never there"}, "lost it was never there"),
        (
            {"state": PinState.LOGGED, "path": "models:/m-1", "files": 3, "size": 70},
            f"models:/m-1, {words.LOGGED}; by its listing 3 files, 70 bytes",
        ),
    ],
)
def test_what_became_of_a_wanted_checkpoint(fields: dict[str, object], told: str) -> None:
    assert words.found_as(replace(Pin(KEY, 1, 3.0, PinState.WANTED, 1.0), **fields)) == told  # type: ignore[arg-type]


def test_an_early_warning_that_served_as_the_notice_is_dated() -> None:
    assert words.told_before(replace(STOPPED, told_s=940.0)) == (
        "the owner was told 60 s before the decision, by the early warning; not before 60 seconds from the decision"
    )
    assert words.told_before(STOPPED).startswith("the owner was told 0 s before")
    assert words.told_before(replace(STOPPED, told_s=1010.0)).startswith("the owner was told 0 s before")


def test_the_way_back_is_read_as_it_is_written() -> None:
    wishes = parse_comment(words.resume_comment("12_3"))

    assert (wishes.undo, wishes.keep, wishes.faults) == ("12_3", True, ())
    assert words.undo_line(STOPPED) == "to go on: evalstopd undo 7"


@pytest.mark.parametrize(
    ("action", "telling"),
    [
        (StopAction.CANCEL, "be cancelled"),
        (StopAction.REQUEUE_HOLD, "can be undone"),
        (StopAction.HOLD_OR_CANCEL, "or cancelled"),
    ],
)
def test_how_a_job_is_stopped(action: StopAction, telling: str) -> None:
    assert telling in words.how(action)


def test_how_a_stopped_job_ended_names_the_owners_signal_where_that_alone_ended_it() -> None:
    by_signal = replace(STOPPED, state=State.CANCELLED, signal=Signal("USR1", 30), acted_s=1500.0)
    plain = "the job ended as COMPLETED"

    assert words.ended(by_signal, Ending("COMPLETED", 2000.0)) == f"{plain} after USR1, as its owner asked"
    assert words.ended(replace(by_signal, cancel_tries=1), Ending("COMPLETED", 2000.0)) == plain
    assert words.ended(replace(by_signal, acted_s=None), Ending("COMPLETED", 2000.0)) == plain
    assert words.ended(STOPPED, Ending("CANCELLED", 2000.0)) == "the job ended as CANCELLED"


def test_what_holds_a_stop_is_said_under_a_code_of_that_stop_and_that_cap_or_step() -> None:
    site, account = (words.cap_code(STOPPED, Held(by, "it is full")) for by in ("site", "account"))
    other = replace(STOPPED, created_s=STOPPED.created_s + 1)

    assert site != account
    assert [words.is_wait_code(code, of) for of in (STOPPED, other) for code in (site, account)] == [
        True, True, False, False,
    ]  # fmt: skip
    assert not words.is_wait_code("foreign-run", STOPPED)
    back = words.back_code(STOPPED, Return(Kind.OPEN, 20, 0, 0))
    assert back != words.back_code(STOPPED, Return(Kind.OPEN, 30, 0, 0))
    assert [words.is_wait_code(back, of) for of in (STOPPED, other)] == [True, False]


def test_what_is_not_known_of_a_message_is_said() -> None:
    early = EarlyWarning(0, 100, 200.0, 40, 1, 2, 30, 3, "k-declines:k=2", "m", "max")

    assert words.early_state(early) == "whether the owner was told at step 40, declining 1 of 2 is not known"
    assert words.early_state(replace(early, failed="no mail")).endswith("declining 1 of 2: no mail")
    assert words.early_state(replace(early, told_s=1.0, failed="late")).startswith("the owner was told at")
    assert "(warning)" in words.unsure(replace(STOPPED, telling="warning"))


def test_the_present_life_of_a_watch() -> None:
    watch = Watch(
        KEY, Life(1, 200), 1.0, Terms(Rung.WARN, "never", "m", Mode.MAX), gpus=4, started_s=5.0, limit_end_s=9.0,
        ending=Ending("CANCELLED", 8.0),
    )  # fmt: skip

    assert lived(watch) == Lived(KEY, Life(1, 200), 5.0, 9.0, 4, Ending("CANCELLED", 8.0))
    known = lived(replace(watch, user="alice", account="ml", partition="gpu", name="train"))
    assert (known.user, known.account, known.partition, known.name) == ("alice", "ml", "gpu", "train")


def test_the_terms_in_effect_are_those_last_judged_by_or_else_the_first() -> None:
    """The number of items is that of the metric it was first seen with."""
    first = Terms(Rung.ENFORCE, "recommended", "acc", Mode.MAX, trusted=True, notice_s=5.0, items=98)
    watch = Watch(KEY, Life(0, 100), 1.0, first)
    judged = replace(watch, rung_now=Rung.WARN, rule_now="k-declines:k=2", metric_now="acc", mode_now=Mode.MIN)

    assert in_effect(watch) == first
    assert in_effect(judged) == replace(first, rung=Rung.WARN, rule="k-declines:k=2", mode=Mode.MIN)
    assert in_effect(replace(judged, metric_now="loss")).items == 0
    assert in_effect(replace(judged, dataset_now="held-out@9f")).dataset == "held-out@9f"
    assert in_effect(replace(judged, metric_now="loss")).metric == "loss"
