"""The table of surprises in docs/trainers.md names tests; a test that was renamed or dropped must not stay in it."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
CASES = 30


def rows() -> dict[str, list[str]]:
    """Return the tests that the table names for each surprise."""
    table = (ROOT / "docs" / "trainers.md").read_text().partition("| surprise | test |")[2]
    cells = [line.strip("|").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    return {surprise.strip(): re.findall(r"`(test_\w+)`", tests) for surprise, tests in cells}


def test_each_surprise_has_a_test_that_exists() -> None:
    found = {
        name for path in (ROOT / "tests").rglob("*.py") for name in re.findall(r"def (test_\w+)", path.read_text())
    }

    assert len(rows()) >= CASES
    assert {surprise: tests for surprise, tests in rows().items() if not tests or set(tests) - found} == {}


def test_neither_the_scripts_nor_their_submission_know_of_us() -> None:
    """Comments that tell the reader what the site has installed are no code."""
    for path in (ROOT / "examples" / "trainers").iterdir():
        code = [line for line in path.read_text().splitlines() if not line.startswith("#")]
        assert "evalstop" not in "\n".join(code).lower(), path.name
