"""What lifts the ceiling of an open server, what the owner's choice of a metric changes, and what is left alone."""

from dataclasses import replace

import pytest

from evalstopd.core.model import Mode, Rung, StopAction
from evalstopd.core.rules import ActionRule, Named, Rules, ServerClass, left_whole, site_terms, standing
from evalstopd.core.wishes import Wishes

OPEN = Rules(rung=Rung.ENFORCE, metric="acc", server=ServerClass.OPEN)


def test_for_one_stop_the_owners_log_lifts_the_ceiling_and_nothing_else() -> None:
    first = site_terms(OPEN)
    held = standing(first, Wishes(), OPEN)
    lifted = standing(first, Wishes(), OPEN, corroborated=True)

    assert (held.terms.rung, held.ceiling) == (Rung.WARN, True)
    assert (lifted.terms.rung, lifted.ceiling) == (Rung.ENFORCE, False)
    for below in (Rung.OBSERVE, Rung.WARN):
        assert standing(first, Wishes(rung=below), OPEN, corroborated=True).terms.rung is below
        assert standing(first, Wishes(), replace(OPEN, rung=below), corroborated=True).terms.rung is below


def test_only_a_job_that_would_be_enforced_is_held_by_the_ceiling() -> None:
    for below in (Rung.OFF, Rung.OBSERVE, Rung.WARN):
        assert not standing(site_terms(OPEN), Wishes(rung=below), OPEN).ceiling


def test_the_owners_word_alone_lifts_the_ceiling_only_where_nobody_else_trusts_the_points() -> None:
    asked = Wishes(rung=Rung.ENFORCE)
    by_word = standing(site_terms(OPEN), asked, OPEN)
    accepted = replace(OPEN, open_server_accepted="a reason")
    checked = replace(OPEN, server=ServerClass.AUTHENTICATED)

    assert (by_word.terms.rung, by_word.ceiling, by_word.by_word) == (Rung.ENFORCE, False, True)
    assert not standing(site_terms(OPEN), asked, OPEN, corroborated=True).by_word
    for trusting in (accepted, checked):
        assert not standing(site_terms(trusting), asked, trusting).by_word
        assert standing(site_terms(OPEN), asked, trusting).by_word, "first seen while nobody did"
        assert standing(site_terms(trusting), asked, OPEN).by_word, "nobody does any more"
    for other in (Wishes(), Wishes(rung=Rung.WARN), Wishes(rung=Rung.ENFORCE, faults=("twice",))):
        assert not standing(site_terms(OPEN), other, OPEN).by_word
    assert not standing(site_terms(OPEN), asked, replace(OPEN, rung=Rung.WARN)).by_word
    assert not by_word.at_most(Rung.WARN, "a reason").by_word


@pytest.mark.parametrize(
    ("rules", "wish", "named"),
    [
        (OPEN, "acc", Named.COMMENT),
        (OPEN, None, Named.SITE),
        (replace(OPEN, metric="other"), None, Named.RUN),
        (replace(OPEN, metrics=("val_*",)), None, Named.RUN),
        (replace(OPEN, metrics=("val_*",)), "acc", Named.COMMENT),
    ],
)
def test_who_named_the_metric_is_known_whatever_the_rung(rules: Rules, wish: str | None, named: Named) -> None:
    """Of several that the site would take, what the run has decides, and on an open server anybody writes into it."""
    first = replace(site_terms(OPEN), metric="acc")

    for asked in (Wishes(metric=wish), Wishes(rung=Rung.ENFORCE, metric=wish)):
        found = standing(first, asked, rules)
        assert (found.named, found.at_most(Rung.WARN, "a reason").named) == (named, named)


@pytest.mark.parametrize(
    ("metric", "mode"), [(None, Mode.MAX), ("acc", Mode.MAX), ("val_loss", Mode.MIN), ("val_f1", Mode.MAX)]
)
def test_the_site_says_which_way_is_better_for_a_metric_that_the_owner_chose(metric: str | None, mode: Mode) -> None:
    """Of the site's own metric its setting says it, whatever a pattern for others would."""
    rules = replace(OPEN, mode=Mode.MAX, modes=(("*loss", Mode.MIN), ("acc", Mode.MIN)))

    assert standing(site_terms(rules), Wishes(metric=metric), rules).terms.mode is mode
    assert standing(site_terms(rules), Wishes(metric=metric, mode=Mode.MIN), rules).terms.mode is Mode.MIN


@pytest.mark.parametrize(
    ("metric", "mode", "of", "said"),
    [
        ("acc", Mode.MAX, "acc", True),
        ("acc", Mode.MAX, "f1", False),
        ("acc", Mode.MIN, "acc", False),
        ("acc", None, "acc", False),
        ("", Mode.MAX, "f1", True),
        ("", Mode.MIN, "f1", False),
    ],
)
def test_the_sites_direction_is_said_of_its_own_metric_or_of_any_where_it_names_none(
    metric: str, mode: Mode | None, of: str, said: bool
) -> None:
    assert replace(OPEN, metric=metric, mode=mode).says_mode(Mode.MAX, of) is said


@pytest.mark.parametrize(
    ("metric", "mode", "found"),
    [
        ("val_loss", None, Mode.MIN),
        ("val_f1", None, Mode.MAX),
        ("val_loss", Mode.MAX, Mode.MAX),
        ("val_f1", Mode.MIN, Mode.MIN),
    ],
)
def test_a_new_job_has_the_direction_that_the_site_says_of_its_metric_itself_or_by_a_pattern(
    metric: str, mode: Mode | None, found: Mode
) -> None:
    assert site_terms(replace(OPEN, metric=metric, mode=mode, modes=(("*loss", Mode.MIN),))).mode is found


def test_a_site_that_names_several_metrics_gives_a_new_job_none_yet() -> None:
    several = replace(OPEN, metric="acc", metrics=("val_*", "eval_*"))

    assert site_terms(several).metric == ""
    assert site_terms(OPEN).metric == "acc"
    assert several.patterns == ("acc", "val_*", "eval_*")
    assert replace(several, metric="").patterns == ("val_*", "eval_*")


@pytest.mark.parametrize(("named", "metrics", "found"), [("acc", (), True), ("", ("val_*",), True), ("", (), False)])
def test_a_job_has_a_metric_or_may_get_one(named: str, metrics: tuple[str, ...], found: bool) -> None:
    assert replace(OPEN, metrics=metrics).names_metrics(named) is found


def test_how_a_job_is_stopped_is_found_by_its_partition_metric_and_rule() -> None:
    rules = replace(
        OPEN,
        rule="k-declines:k=2",
        actions=(
            ActionRule(StopAction.REQUEUE_HOLD, "gpu", "acc", "k-declines"),
            ActionRule(StopAction.HOLD_OR_CANCEL, "", "val_*"),
        ),
    )
    first = site_terms(rules, "gpu")

    assert (first.action, site_terms(rules).action) == (StopAction.REQUEUE_HOLD, StopAction.CANCEL)
    elsewhere = site_terms(rules)
    assert standing(elsewhere, Wishes(), rules, partition="gpu").terms.action is StopAction.REQUEUE_HOLD
    assert standing(elsewhere, Wishes(), rules).terms.action is StopAction.CANCEL
    assert standing(elsewhere, Wishes(metric="val_f1"), rules).terms.action is StopAction.HOLD_OR_CANCEL
    assert standing(elsewhere, Wishes(), replace(rules, rule="never"), partition="gpu").terms.action is (
        StopAction.CANCEL
    )


def test_a_component_of_a_heterogeneous_job_is_off_every_rung_and_keeps_its_terms() -> None:
    first = site_terms(OPEN)
    found = left_whole(first)

    assert found.terms == replace(first, rung=Rung.OFF)
    assert found.why == "a component of a heterogeneous job is not judged alone"
