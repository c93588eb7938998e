"""The report sets published, ours and the difference side by side, and hides nothing."""

import csv
import io
from pathlib import Path

import pytest
from evalstopd_sim.experiments import experiments
from evalstopd_sim.published import CLAIMS, Claim
from evalstopd_sim.report import CAVEATS, html_report, markdown_report
from evalstopd_sim.reproduce import Wanted, run, table_csv

CHOSEN = experiments(["main", "noise"])
FOUND = run(CHOSEN, Wanted(("main", "noise"), 2, 1, Path("unused")), lambda done, of: None)


def test_every_claim_that_is_shown_is_found_among_the_rows() -> None:
    for name in FOUND:
        assert all(claim.ours(FOUND[name]) is not None for claim in CLAIMS[name])


def test_every_experiment_has_its_claims_at_points_that_exist() -> None:
    for experiment in experiments():
        assert {claim.at for claim in CLAIMS[experiment.name]} <= {point.at for point in experiment.points}


@pytest.mark.parametrize(
    ("low", "high", "ours", "published", "difference"),
    [
        (98.3, 98.3, 98.7, "98.3 %", "+0.4"),
        (89.0, float("inf"), 92.0, "at least 89 %", "within"),
        (89.0, float("inf"), 85.0, "at least 89 %", "-4.0"),
        (-25.2, -8.9, -30.0, "-25.2 to -8.9 %", "-4.8"),
        (None, None, 1.0, "not published", "-"),
        (98.3, 98.3, None, "98.3 %", "-"),
    ],
)
def test_a_difference_is_to_the_figure_or_to_the_nearest_bound(
    low: float | None, high: float | None, ours: float | None, published: str, difference: str
) -> None:
    claim = Claim("x", "paper", "none", "precision", low, high)

    assert (claim.published, claim.difference(ours)) == (published, difference)


def test_the_report_says_what_must_be_known() -> None:
    report = markdown_report(CHOSEN, FOUND, 2)

    assert all(line in report for line in CAVEATS)
    for words in ("fitted by us", "not published", "Where k = 2 does harm", "noise at 0.12", "FPR healthy RLHF"):
        assert words in report


def test_the_page_has_the_same_tables_and_no_markup_from_data() -> None:
    page = html_report(CHOSEN, FOUND, 2)

    assert page.count("<table>") == markdown_report(CHOSEN, FOUND, 2).count("\n|---")
    assert "p &lt; .001" in page


def test_the_csv_has_a_line_for_every_row_and_a_cell_for_every_column() -> None:
    lines = list(csv.reader(io.StringIO(table_csv(FOUND["noise"]))))

    assert len(lines) == 1 + sum(len(each) for each in FOUND["noise"].values())
    assert len({len(line) for line in lines}) == 1
