"""Where checkpoints are looked for: the owner's word first, then what cannot be changed, and nobody else's tag."""

from dataclasses import replace

import pytest

from evalstopd.core.binding import RunFacts
from evalstopd.core.output import OUTPUT_DIR_TAG, lightnings, output_dir, unheard
from evalstopd.core.rules import Rules, ServerClass, site_terms
from evalstopd.core.wishes import Wishes

AUTHENTICATED, OPEN = Rules(server=ServerClass.AUTHENTICATED), Rules(server=ServerClass.OPEN)
ACCEPTED = replace(OPEN, open_server_accepted="a reason")
NAMED = {OUTPUT_DIR_TAG: "by-tag"}
LOGGED = {"output_dir": "by-trainer", "trainer/default_local_dir": "by-verl"}


def run(tags: dict[str, str] | None = None, params: dict[str, str] | None = None) -> RunFacts:
    return RunFacts("r1", "RUNNING", False, "alice", tags or {}, params or {}, experiment_id="12")


def place(wishes: Wishes, run: RunFacts, rules: Rules, first: Rules | None = None) -> str | None:
    """Return the folder of a job that was first seen under the rules of now, unless told otherwise."""
    return output_dir(wishes, run, site_terms(first or rules), rules)


def test_the_owners_word_goes_before_all_else() -> None:
    for rules in (AUTHENTICATED, ACCEPTED, OPEN):
        assert place(Wishes(output="by-comment"), run(NAMED, LOGGED), rules) == "by-comment"


def test_a_tag_counts_only_where_nobody_else_can_write_it() -> None:
    assert place(Wishes(), run(NAMED, LOGGED), AUTHENTICATED) == "by-tag"
    assert place(Wishes(), run(NAMED, LOGGED), ACCEPTED) == "by-trainer"
    assert place(Wishes(), run(NAMED), OPEN) == "12/r1/checkpoints"


def test_a_parameter_counts_only_where_the_site_trusts_what_runs_say_in_the_order_of_the_trainers() -> None:
    for rules in (AUTHENTICATED, ACCEPTED):
        assert place(Wishes(), run(params=LOGGED), rules) == "by-trainer"
        assert place(Wishes(), run(params={"trainer/default_local_dir": "by-verl"}), rules) == "by-verl"
        assert place(Wishes(), run(params={"output": "elsewhere"}), rules) == "12/r1/checkpoints"
    assert place(Wishes(), run(params=LOGGED), OPEN) == "12/r1/checkpoints"


@pytest.mark.parametrize(("first", "now"), [(OPEN, ACCEPTED), (OPEN, AUTHENTICATED), (ACCEPTED, OPEN)])
def test_what_could_be_set_before_anybody_was_trusted_or_can_be_since_counts_for_nothing(
    first: Rules, now: Rules
) -> None:
    assert place(Wishes(), run(NAMED, LOGGED), now, first) == "12/r1/checkpoints"


@pytest.mark.parametrize("name", LOGGED)
def test_an_owner_is_told_what_to_write_where_only_a_parameter_that_counts_for_nothing_names_a_folder(
    name: str,
) -> None:
    found = unheard(Wishes(), run(params={name: "x"}), site_terms(OPEN), OPEN)

    assert found is not None
    assert not found.refuse
    assert found.text.endswith("name the output folder in the job's comment, evalstop_output=DIR")
    assert unheard(Wishes(output="out"), run(params={name: "x"}), site_terms(OPEN), OPEN) is None
    assert unheard(Wishes(), run(params={name: ""}), site_terms(OPEN), OPEN) is None
    assert unheard(Wishes(), run(NAMED), site_terms(OPEN), OPEN) is None
    assert unheard(Wishes(), run(params={name: "x"}), site_terms(ACCEPTED), ACCEPTED) is None


def test_an_empty_word_tells_nothing() -> None:
    empty = run({OUTPUT_DIR_TAG: ""}, {**LOGGED, "output_dir": ""})

    assert place(Wishes(output=""), empty, AUTHENTICATED) == "by-verl"


def test_without_any_word_it_is_where_lightning_saves() -> None:
    assert lightnings(run()) == "12/r1/checkpoints"


@pytest.mark.parametrize("name", ["", "..", "a/b", "a\n", "\u0663", "x" * 65])
def test_a_name_that_could_lead_elsewhere_gives_no_folder(name: str) -> None:
    assert lightnings(replace(run(), run_id=name)) is None
    assert lightnings(replace(run(), experiment_id=name)) is None
    assert place(Wishes(), replace(run(), experiment_id=name), OPEN) is None
