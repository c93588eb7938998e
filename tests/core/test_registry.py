"""Names of registered models: safe whatever the parts hold, and never one for all jobs; and what versions tell."""

import re
from dataclasses import replace

import pytest

from evalstopd.core.intent import Evidence, Intent, State
from evalstopd.core.model import JobKey, Life, Rung
from evalstopd.core.registry import asks, check_template, is_logged, model_name, version_tags

EVIDENCE = Evidence(
    rule="k-declines:k=2", metric="acc", mode="max", run_id="r", proof="comment", two_way=True, steps=(1, 2),
    scores=(3.0, 2.0), trigger_step=2, best_step=1, best_score=3.0, k_before_step=1, declines=1, reason="it fell",
)  # fmt: skip
STOPPED = Intent(
    JobKey("c", "12_3", 1001, 100), Life(0, 100), Rung.ENFORCE, EVIDENCE, 1000.0, 1060.0, State.PROMOTED,
    kept_path="/best", model="wanted",
)  # fmt: skip
HOSTILE = "a/b:c\n'\"@é{job}漢 ../x"


@pytest.mark.parametrize(
    "template", ["evalstop-{cluster}-{job}", "{uid}", "best_{account}", "{cluster}-{uid}-{job}", "{job}-{cluster}_"]
)
def test_a_name_is_safe_whatever_the_parts_hold(template: str):
    check_template(template)
    name = model_name(template, JobKey(HOSTILE, "12_3", 1001, 5), HOSTILE * 50)
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,250}", name)


def test_tasks_of_an_array_have_models_of_their_own():
    names = {model_name("m-{cluster}-{job}", JobKey("c", f"12_{task}", 1, 5), "") for task in range(3)}
    assert names == {"m-c-12_0", "m-c-12_1", "m-c-12_2"}


def test_a_name_tells_what_its_parts_say_with_a_dash_for_each_unsafe_letter():
    key = JobKey("", "12_3", 1001, 5)

    assert model_name("{cluster}_{job}-{uid}-{account}", key, "a b/c.d") == "-_12_3-1001-a-b-c-d"
    assert model_name("{account}", key, "x" * 65) == "x" * 64


NO_LETTER = "a model's name has letters, digits, - and _ beside its parts"
NO_PART = "the parts of a model's name are {account}, {cluster}, {job}, {uid}"
FOR_ALL = "a model's name needs {job}, {uid} or {account}"


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("", FOR_ALL),
        ("evalstop", FOR_ALL),
        ("evalstop-{cluster}", FOR_ALL),
        ("{name}-{job}", NO_PART),
        ("{}{job}", NO_PART),
        ("a/{job}", NO_LETTER),
        ("a:{job}", NO_LETTER),
        ("{job.uid}", NO_PART),
        ("{job!r}", NO_PART),
        ("{job:>9}", NO_PART),
    ],
)
def test_what_would_be_unsafe_or_one_name_for_all_is_refused_in_words(template: str, why: str):
    with pytest.raises(ValueError, match=r"\S") as refused:
        check_template(template)
    assert str(refused.value) == why


def test_a_brace_that_is_never_closed_is_refused():
    with pytest.raises(ValueError, match=r"\S"):
        check_template("{")


@pytest.mark.parametrize("state", list(State))
def test_a_checkpoint_is_registered_once_it_is_published_and_never_of_a_stop_that_was_given_up(state: State):
    published = {"promoted", "signalled", "cancelled", "held", "confirmed"}

    assert asks(replace(STOPPED, state=state)) is (state.value in published)


@pytest.mark.parametrize(
    ("model", "wanted"), [("wanted", True), ("waiting", True), ("refused", False), ("models:/m/1", False), ("", False)]
)
def test_only_what_is_still_to_be_registered_is_asked_for(model: str, wanted: bool):
    assert asks(replace(STOPPED, model=model)) is wanted


def test_a_path_of_the_keepers_is_no_logged_model():
    assert [is_logged(each) for each in ("models:/m-1", "/x/models:/m-1", "")] == [True, False, False]


def test_a_version_tells_which_stop_of_which_job_it_was_kept_for():
    assert version_tags(STOPPED) == {
        "evalstop.job": "12_3",
        "evalstop.step": "1",
        "evalstop.metric": "acc",
        "evalstop.checkpoint": "/best",
        "evalstop.intent": STOPPED.id,
    }
    of_one = replace(STOPPED, evidence=replace(EVIDENCE, dataset="held-out@9f"))
    assert version_tags(of_one) == {**version_tags(STOPPED), "evalstop.dataset": "held-out@9f"}
