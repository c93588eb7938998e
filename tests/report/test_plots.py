"""Pictures: they are drawn, from hostile names too, and their absence is said in words."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evalstopd.report.replay.commands import app

SAMPLE = Path(__file__).parent.parent / "data" / "eval_curves_sample.jsonl"
PNG = b"\x89PNG"


def test_curves_and_trade_offs_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    done = CliRunner().invoke(
        app,
        ["replay", str(SAMPLE), "--primary", "--max-evals", "20", "--rule", "recommended", "--plots", str(tmp_path)],
    )

    assert done.exit_code == 0, done.output
    assert {each.name for each in tmp_path.iterdir()} == {"curves-1-recommended.png", "trade-off.png"}
    assert all(each.read_bytes().startswith(PNG) for each in tmp_path.iterdir())


def test_names_that_look_like_formulas_are_drawn_as_text(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    source = tmp_path / "x.jsonl"
    source.write_text(json.dumps({"id": r"$\frac{", "steps": [1, 2, 3], "values": [1, 2, 3], "label": "healthy"}))
    done = CliRunner().invoke(app, ["replay", str(source), "--rule", "never", "--plots", str(tmp_path / "p")])

    assert done.exit_code == 0, done.output


def test_without_matplotlib_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    done = CliRunner().invoke(app, ["replay", str(SAMPLE), "--rule", "never", "--plots", str(tmp_path)])

    assert done.exit_code == 78
    assert "evalstopd[plots]" in done.stderr


def test_the_command_line_itself_loads_neither_matplotlib_nor_the_rules() -> None:
    """Every other command must start fast."""
    heavy = "[m for m in sys.modules if 'matplotlib' in m or 'tune' in m]"
    code = f"import sys, evalstopd.report.replay.commands; print({heavy})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
