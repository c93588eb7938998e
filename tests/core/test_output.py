"""Where checkpoints are looked for: the owner's word first, then what cannot be changed, and nobody else's tag."""

from dataclasses import replace

import pytest

from evalstopd.core.binding import RunFacts
from evalstopd.core.output import OUTPUT_DIR_TAG, lightnings, output_dir
from evalstopd.core.rules import Rules, ServerClass
from evalstopd.core.wishes import Wishes

AUTHENTICATED, OPEN = Rules(server=ServerClass.AUTHENTICATED), Rules(server=ServerClass.OPEN)
NAMED = {OUTPUT_DIR_TAG: "by-tag"}
LOGGED = {"output_dir": "by-trainer", "trainer/default_local_dir": "by-verl"}


def run(tags: dict[str, str] | None = None, params: dict[str, str] | None = None) -> RunFacts:
    return RunFacts("r1", "RUNNING", False, "alice", tags or {}, params or {}, experiment_id="12")


def test_the_owners_word_goes_before_all_else() -> None:
    assert output_dir(Wishes(output="by-comment"), run(NAMED, LOGGED), AUTHENTICATED) == "by-comment"


def test_a_tag_counts_only_where_nobody_else_can_write_it() -> None:
    assert output_dir(Wishes(), run(NAMED, LOGGED), AUTHENTICATED) == "by-tag"
    assert output_dir(Wishes(), run(NAMED, LOGGED), OPEN) == "by-trainer"
    assert output_dir(Wishes(), run(NAMED), OPEN) == "12/r1/checkpoints"


def test_parameters_count_in_the_order_of_the_trainers() -> None:
    assert output_dir(Wishes(), run(params=LOGGED), OPEN) == "by-trainer"
    assert output_dir(Wishes(), run(params={"trainer/default_local_dir": "by-verl"}), OPEN) == "by-verl"
    assert output_dir(Wishes(), run(params={"output": "elsewhere"}), OPEN) == "12/r1/checkpoints"


def test_an_empty_word_tells_nothing() -> None:
    empty = run({OUTPUT_DIR_TAG: ""}, {**LOGGED, "output_dir": ""})

    assert output_dir(Wishes(output=""), empty, AUTHENTICATED) == "by-verl"


def test_without_any_word_it_is_where_lightning_saves() -> None:
    assert lightnings(run()) == "12/r1/checkpoints"


@pytest.mark.parametrize("name", ["", "..", "a/b", "a\n", "\u0663", "x" * 65])
def test_a_name_that_could_lead_elsewhere_gives_no_folder(name: str) -> None:
    assert lightnings(replace(run(), run_id=name)) is None
    assert lightnings(replace(run(), experiment_id=name)) is None
    assert output_dir(Wishes(), replace(run(), experiment_id=name), OPEN) is None
