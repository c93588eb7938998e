"""Which way is better: what is taken for told, what is doubted, and in which words."""

from collections.abc import Sequence

import pytest

from evalstopd.core.guards import DIRECTION, Caution
from evalstopd.core.metric_choice import choose, direction_caution, is_sweeping, told_mode
from evalstopd.core.model import Mode

HOW = "the owner can say evalstop_mode=, the site rules.mode or rules.modes"


@pytest.mark.parametrize(
    ("modes", "sweeping"),
    [([], False), ([("*loss", Mode.MIN)], False), ([("acc", Mode.MAX)], False), ([("a*", Mode.MAX)], True)],
)
def test_only_a_pattern_that_fits_says_it_sweepingly(modes: Sequence[tuple[str, Mode]], sweeping: bool) -> None:
    assert is_sweeping("acc", modes) is sweeping


def test_a_trainer_that_names_its_metric_without_a_direction_has_told_none() -> None:
    assert told_mode("eval_f1", [], {"metric_for_best_model": "f1"}) is None
    assert told_mode("", [], {"greater_is_better": "True"}) is Mode.MAX
    assert told_mode("XXXX", [], {"greater_is_better": "True"}) is None


def test_what_is_logged_beside_another_metric_is_never_chosen_though_a_pattern_fits() -> None:
    assert choose({"val_f1", "val_f1_stderr"}, ("val_f1_stderr", "val_*")) == "val_f1"


@pytest.mark.parametrize(
    ("metric", "told", "stated", "sweeping", "text"),
    [
        ("val_loss", None, True, False, "max is taken for better, and val_loss speaks for min"),
        ("f1x", Mode.MIN, False, False, "max is taken for better, and f1x speaks for min"),
        ("f1x", None, False, False, "that max is better for f1x is a guess"),
        ("val_loss", None, False, False, "that max is better for val_loss is a guess"),
        ("val_loss", Mode.MAX, False, True, "max is taken for better, and val_loss speaks for min"),
        ("val_loss", Mode.MAX, False, False, None),
        ("f1x", Mode.MAX, False, True, None),
        ("f1x", None, True, False, None),
    ],
)
def test_a_direction_that_is_a_guess_or_contradicted_is_refused_in_words(
    metric: str, told: Mode | None, stated: bool, sweeping: bool, text: str | None
) -> None:
    found = direction_caution(metric, Mode.MAX, told, stated=stated, sweeping=sweeping)

    assert found == (None if text is None else Caution(DIRECTION, f"{text}: {HOW}", refuse=True))
