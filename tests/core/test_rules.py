"""Which rung a job stands on: owners may lower it, nobody's settings may raise it for a job already seen."""

from dataclasses import replace

import pytest

from evalstopd.core.binding import Trust
from evalstopd.core.detectors import KDeclines
from evalstopd.core.model import Job, Mode, Phase, Rung, StopAction
from evalstopd.core.rules import (
    ActionRule,
    Rules,
    ServerClass,
    format_spec,
    is_governed,
    make_detector,
    reckons_with_noise,
    site_terms,
    standing,
)
from evalstopd.core.spec import Spec
from evalstopd.core.watch import Terms
from evalstopd.core.wishes import parse_comment

SITE = Rules(rung=Rung.ENFORCE, metric="acc", server=ServerClass.AUTHENTICATED)
OPEN = replace(SITE, server=ServerClass.OPEN)
JOB = Job("c", "7", 7, 1001, "alice", Phase.RUNNING, "RUNNING", 1, 1, 0, 4, account="ml", partition="gpu")


def rung(rules: Rules, comment: str = "", first: Rules | None = None) -> Rung:
    return standing(site_terms(first or rules), parse_comment(comment), rules).terms.rung


def test_the_default_site_only_observes() -> None:
    assert Rules().rung is Rung.OBSERVE
    assert rung(Rules(), "evalstop=enforce") is Rung.OBSERVE


@pytest.mark.parametrize("wish", list(Rung))
def test_the_owner_lowers_the_rung_and_never_raises_it(wish: Rung) -> None:
    assert rung(SITE, f"evalstop={wish.word}") is wish
    assert rung(replace(SITE, rung=Rung.WARN), f"evalstop={wish.word}") is min(wish, Rung.WARN)


def test_an_open_server_has_the_ceiling_warn_unless_owner_or_admin_lift_it() -> None:
    assert rung(OPEN) is Rung.WARN
    assert rung(OPEN, "evalstop=enforce") is Rung.ENFORCE
    assert rung(replace(OPEN, open_server_accepted="one tenant only")) is Rung.ENFORCE
    assert rung(replace(OPEN, open_server_accepted="one tenant only"), "evalstop=warn") is Rung.WARN


def test_settings_never_get_stricter_for_a_job_already_seen_but_may_loosen() -> None:
    observed = replace(SITE, rung=Rung.OBSERVE)

    assert rung(SITE, first=observed) is Rung.OBSERVE
    assert rung(observed, first=SITE) is Rung.OBSERVE
    patient = replace(SITE, rule="k-declines:k=5")
    assert standing(site_terms(patient), parse_comment(""), SITE).terms.rule == "k-declines:k=5"
    never = replace(SITE, rule="never")
    assert standing(site_terms(SITE), parse_comment(""), never).terms.rule == "never"


def test_trust_given_later_and_a_metric_named_later_do_not_reach_a_job_already_seen() -> None:
    assert rung(SITE, first=OPEN) is Rung.WARN
    assert rung(replace(OPEN, open_server_accepted="now"), first=OPEN) is Rung.WARN
    assert rung(OPEN, first=SITE) is Rung.WARN
    nameless = replace(SITE, metric="")
    assert standing(site_terms(nameless), parse_comment(""), SITE).terms.metric == ""
    assert standing(site_terms(SITE), parse_comment(""), replace(SITE, notice_s=1.0)).terms.notice_s == SITE.notice_s


@pytest.mark.parametrize("first", list(StopAction))
@pytest.mark.parametrize("now", list(StopAction))
def test_a_harsher_stop_never_reaches_a_job_already_seen_a_gentler_one_does(first: StopAction, now: StopAction) -> None:
    order = [StopAction.REQUEUE_HOLD, StopAction.HOLD_OR_CANCEL, StopAction.CANCEL]
    terms = standing(site_terms(replace(SITE, action=first)), parse_comment(""), replace(SITE, action=now)).terms

    assert terms.action is order[min(order.index(first), order.index(now))]


ACTIONS = (
    ActionRule(StopAction.REQUEUE_HOLD, partition="long*"),
    ActionRule(StopAction.HOLD_OR_CANCEL, metric="eval/*", rule="k-declines"),
    ActionRule(StopAction.CANCEL, rule="recommended"),
)


@pytest.mark.parametrize(
    ("partition", "metric", "rule", "action"),
    [
        ("long-2", "eval/x", "k-declines:k=2", StopAction.REQUEUE_HOLD),
        ("gpu", "eval/x", "k-declines:k=2", StopAction.HOLD_OR_CANCEL),
        ("gpu", "score", "k-declines:k=2", StopAction.REQUEUE_HOLD),
        ("gpu", "eval/x", "recommended", StopAction.CANCEL),
    ],
)
def test_the_first_entry_that_fits_says_how_a_job_is_stopped(
    partition: str, metric: str, rule: str, action: StopAction
) -> None:
    rules = replace(SITE, action=StopAction.REQUEUE_HOLD, actions=ACTIONS)

    assert rules.action_for(partition, metric, rule) is action
    seen = site_terms(replace(rules, metric=metric, rule=rule), partition)
    assert seen.action is action


def test_a_way_to_stop_that_fits_later_reaches_a_job_already_seen_only_where_it_is_gentler() -> None:
    cancels, holds = replace(SITE, action=StopAction.CANCEL), replace(SITE, action=StopAction.REQUEUE_HOLD)
    own_k = parse_comment("evalstop_k=3")
    gentle = replace(cancels, actions=(ActionRule(StopAction.REQUEUE_HOLD, rule="k-declines"),), rule="recommended")
    harsh = replace(holds, actions=(ActionRule(StopAction.CANCEL, partition="other"),))

    assert standing(site_terms(gentle), parse_comment(""), gentle).terms.action is StopAction.CANCEL
    assert standing(site_terms(gentle), own_k, gentle).terms.action is StopAction.REQUEUE_HOLD
    moved = standing(site_terms(harsh, "gpu"), parse_comment(""), harsh, partition="other")
    assert moved.terms.action is StopAction.REQUEUE_HOLD


def test_an_ambiguous_comment_takes_the_job_off_every_rung() -> None:
    assert rung(SITE, "evalstop=enforce evalstop=enforce") is Rung.OFF


def test_the_owner_names_metric_direction_and_k() -> None:
    wishes = parse_comment("evalstop_metric=loss evalstop_mode=min evalstop_k=4")
    terms = standing(site_terms(replace(SITE, rule="k-declines:k=2,min_delta=0.1")), wishes, SITE).terms

    assert (terms.metric, terms.mode, terms.rule) == ("loss", Mode.MIN, "k-declines:k=4,min_delta=0.1")


@pytest.mark.parametrize(("site", "rule"), [("recommended", "k-declines:k=4"), ("never", "never")])
def test_who_names_a_k_asks_for_k_declines_unless_the_site_has_switched_detection_off(site: str, rule: str) -> None:
    rules = replace(SITE, rule=site)

    assert standing(site_terms(rules), parse_comment("evalstop_k=4"), rules).terms.rule == rule
    assert standing(site_terms(rules), parse_comment(""), rules).terms.rule == site


def test_jobs_without_gpus_of_other_partitions_or_exempt_are_not_governed() -> None:
    assert is_governed(JOB, SITE)
    assert not is_governed(replace(JOB, gpus=0), SITE)
    assert not is_governed(JOB, replace(SITE, partitions=("other",)))
    assert not is_governed(JOB, replace(SITE, exempt_accounts=("ml",)))


def why(rules: Rules, comment: str = "", first: Rules | None = None) -> str:
    return standing(site_terms(first or rules), parse_comment(comment), rules).why


def test_the_reason_for_a_rung_is_the_first_that_holds_it_down() -> None:
    assert why(SITE) == "the rung this job was first seen on"
    assert why(replace(SITE, rung=Rung.WARN), first=SITE) == "the site's rung"
    assert "open MLflow server" in why(OPEN)
    assert why(SITE, "evalstop=observe") == "the owner's wish"
    assert "evalstop_typo" in why(SITE, "evalstop_typo=1")


def test_the_owners_word_keeps_a_job_at_observe_only_where_the_site_would_go_further() -> None:
    def wished(rules: Rules, comment: str) -> bool:
        return standing(site_terms(rules), parse_comment(comment), rules).wished

    assert wished(SITE, "evalstop=observe")
    assert wished(OPEN, "evalstop=observe")
    assert not wished(SITE, "evalstop=warn")
    assert not wished(SITE, "evalstop=off")
    assert not wished(SITE, "")
    assert not wished(replace(SITE, rung=Rung.OBSERVE), "evalstop=observe")


def test_a_longer_notice_reaches_a_job_already_seen() -> None:
    later = replace(SITE, notice_s=SITE.notice_s + 1)

    assert standing(site_terms(SITE), parse_comment(""), later).terms.notice_s == SITE.notice_s + 1


def test_the_sites_terms_are_its_settings() -> None:
    rules = replace(SITE, mode=Mode.MIN, items=98, action=StopAction.REQUEUE_HOLD, notice_s=7.0, dataset="val")

    assert site_terms(rules) == Terms(
        Rung.ENFORCE,
        "recommended",
        "acc",
        Mode.MIN,
        trusted=True,
        notice_s=7.0,
        action=StopAction.REQUEUE_HOLD,
        items=98,
        dataset="val",
    )
    assert not site_terms(OPEN).trusted


def test_a_dataset_is_the_owners_choice_else_the_one_that_the_site_named_when_the_job_was_first_seen() -> None:
    seen, later = site_terms(replace(SITE, dataset="val")), replace(SITE, dataset="other")

    assert standing(seen, parse_comment(""), later).terms.dataset == "val"
    assert standing(seen, parse_comment("evalstop_dataset=mine"), later).terms.dataset == "mine"
    assert standing(site_terms(SITE), parse_comment(""), later).terms.dataset == ""


def test_logged_models_count_only_by_settings_then_and_now_and_only_on_a_trusted_server() -> None:
    counts, never = replace(SITE, logged_models=True), parse_comment("")
    first = site_terms(counts)

    assert first.logged_models
    assert standing(first, never, counts).terms.logged_models
    assert not standing(first, never, SITE).terms.logged_models
    assert not standing(site_terms(SITE), never, counts).terms.logged_models
    assert not standing(first, parse_comment("evalstop=enforce"), counts.as_open()).terms.logged_models
    assert not site_terms(replace(OPEN, logged_models=True)).logged_models


@pytest.mark.parametrize(
    ("first", "now", "fewest"), [(0, 0, 0), (100, 0, 100), (0, 100, 100), (100, 50, 50), (50, 100, 50)]
)
def test_the_fewer_items_count_and_a_number_once_known_stays(first: int, now: int, fewest: int) -> None:
    seen = site_terms(replace(SITE, items=first))
    rules = replace(SITE, items=now)

    assert standing(seen, parse_comment(""), rules).terms.items == fewest
    assert standing(seen, parse_comment("evalstop_metric=acc"), rules).terms.items == fewest
    assert standing(seen, parse_comment("evalstop_metric=other"), rules).terms.items == 0
    assert standing(seen, parse_comment(""), replace(rules, metric="other")).terms.items == first


def test_a_standing_is_lowered_never_raised() -> None:
    stands = standing(site_terms(SITE), parse_comment("evalstop=warn"), SITE)

    assert stands.at_most(Rung.ENFORCE, "a breaker") == stands
    assert stands.at_most(Rung.WARN, "a breaker") == stands
    lowered = stands.at_most(Rung.OBSERVE, "a breaker")
    assert (lowered.terms, lowered.why) == (replace(stands.terms, rung=Rung.OBSERVE), "a breaker")


@pytest.mark.parametrize(
    ("rule", "weighs"),
    [("recommended", True), ("drop-test-safe:sigma=1", True), ("k-declines:k=3", False), ("never", False)],
)
def test_only_rules_that_weigh_a_fall_reckon_with_noise(rule: str, weighs: bool) -> None:
    assert reckons_with_noise(replace(site_terms(SITE), rule=rule)) is weighs


def test_a_rule_without_parameters_is_written_as_its_name() -> None:
    assert format_spec(Spec("never")) == "never"
    assert format_spec(Spec("k-declines", (("k", 3.0), ("min_delta", 0.5)))) == "k-declines:k=3,min_delta=0.5"


def test_a_job_with_one_gpu_in_a_watched_partition_is_governed() -> None:
    assert is_governed(replace(JOB, gpus=1), replace(SITE, partitions=("other", "gpu"), exempt_accounts=("guests",)))


def test_a_server_that_turned_out_open_is_treated_as_one_and_its_tags_prove_nothing() -> None:
    declared = replace(SITE, trust=Trust(tags=True))

    assert declared.as_open() == replace(SITE, server=ServerClass.OPEN, trust=Trust(tags=False))


def test_a_job_is_judged_by_its_own_rule_and_direction() -> None:
    terms = replace(site_terms(SITE), rule="k-declines:k=3", mode=Mode.MIN)

    assert make_detector(terms) == KDeclines(3, Mode.MIN)
