"""How rows look on a terminal: plain aligned text, the choices behind the figures printed with them."""

from collections.abc import Iterable, Sequence

from evalstopd.core.estimate import FLOOR_SHARE
from evalstopd_sim.arms import Setting
from evalstopd_sim.rows import Row
from evalstopd_sim.stats import Estimate

_LINES: tuple[tuple[str, str, float, int], ...] = (
    ("mean JCT, h", "jct_mean_s", 1 / 3600, 2),
    ("median JCT, h", "jct_median_s", 1 / 3600, 2),
    ("p95 JCT, h", "jct_p95_s", 1 / 3600, 2),
    ("mean JCT of jobs not stopped, h", "jct_kept_mean_s", 1 / 3600, 2),
    ("makespan, h", "makespan_s", 1 / 3600, 1),
    ("utilisation, %", "utilisation", 100, 1),
    ("preemptions", "preemptions", 1, 1),
    ("W1: past the true peak, GPU-h", "w1_gpu_h", 1, 0),
    ("W2: W1 + preemption overhead", "w2_gpu_h", 1, 0),
    ("W3: W2 + healthy jobs stopped", "w3_gpu_h", 1, 0),
    ("W4: stopped before the peak, GPU-h", "w4_gpu_h", 1, 0),
    ("W4: stopped before the peak, jobs", "w4_jobs", 1, 1),
    ("jobs stopped", "stopped", 1, 1),
    ("precision, %", "precision", 100, 1),
    ("recall, %", "recall", 100, 1),
    ("  of it before the last eval, %", "recall_before_last_eval", 100, 1),
    ("FPR of all jobs that do not hack, %", "fpr", 100, 2),
    ("FPR of healthy RLHF jobs, %", "fpr_healthy_rlhf", 100, 2),
    ("detection delay, evals", "delay_evals", 1, 2),
    ("detection delay, h of running", "delay_h", 1, 2),
    ("post-peak time saved, %", "saved_share_past_peak", 100, 1),
    ("score lost: best eval kept", "regret_best", 1, 4),
    ("score lost: k evals before kept", "regret_k_before", 1, 4),
    ("score lost: best 3-eval mean kept", "regret_best3", 1, 4),
    ("score lost by a false stop", "false_stop_lost_level", 1, 4),
    ("unfinished jobs (in no JCT)", "unfinished", 1, 1),
    ("jobs cancelled by their owners", "cancelled", 1, 1),
)


def side_by_side(rows: Sequence[Row]) -> list[str]:
    """Return a table: one line for a score, one column for an arm, the change to the base after the last.

    Arms run through the daemon have a table of their own.
    """
    rows = [row for row in rows if row.detections is None]
    heads = ["", *(f"{row.arm.base}" if row.label == "none" else f"+ {row.label}" for row in rows), "change"]
    body = [
        [name, *(_figure(row, score, scale, digits) for row in rows), _change(rows[-1], score)]
        for name, score, scale, digits in _LINES
    ]
    return aligned([heads, *body])


def daemon_lines(rows: Sequence[Row]) -> list[str]:
    """Return what polling lost of the stops made at each eval, one line for each poll period; none without a daemon."""
    found = [(row.arm.poll_s or 0.0, row, row.detections) for row in rows if row.detections is not None]
    if not found:
        return []
    heads = ["daemon polls each", "stopped by both", "ended before seen", "seen, let go", "verdict elsewhere"]
    body = [
        [
            f"{poll_s:g} s",
            *(str(count) for count in (each.both, each.ended, each.let_go, each.elsewhere)),
            f"{each.delay_s / each.both / 60:.1f} min" if each.both else "-",
            _change_or_dash(row, "jct_mean_s"),
            _change_or_dash(row, "w3_gpu_h"),
        ]
        for poll_s, row, each in found
    ]
    return ["", *aligned([[*heads, "eval to stop", "mean JCT", "W3"], *body])]


def _change_or_dash(row: Row, score: str) -> str:
    change = row.changes.get(score)
    return "-" if change is None else f"{change.mean:+.1f} %"


def about(setting: Setting, seeds: range) -> list[str]:
    """Return the lines that say what the figures rest on."""
    if setting.trace is None:
        source = f"preset {setting.preset.name} ({setting.preset.about}), {setting.jobs} jobs a seed"
    else:
        out = "; left out: " + ", ".join(f"{n} x {why}" for why, n in setting.trace.left_out)
        source = f"trace {setting.trace.name}, {setting.jobs} jobs{out if setting.trace.left_out else ''}; "
        source += f"kinds, labels and curves from preset {setting.preset.name}"
    lines = [source, f"seeds {seeds.start} to {seeds.stop - 1}; {setting.cluster.words}"]
    lines.append(f"evals: {_evals(setting)}; estimates: {_estimates(setting)}")
    if setting.curves is not None:
        lines.append(
            f"real curves from {setting.curves.name}: {len(setting.curves.declining)} declining, "
            f"{len(setting.curves.healthy)} healthy, {setting.curves.left_out} left out"
        )
    if setting.preset.name == "paper":
        lines.append("the preset was fitted by us to the published figures: a match is no evidence for them")
    return lines


def _evals(setting: Setting) -> str:
    if setting.curves is not None:
        return "those of the curves, at most 20 a job, at equal fractions of its length"
    if setting.preset.every_s is not None:
        return f"every {setting.preset.every_s:g} s of running"
    counts = "/".join(str(count) for count in setting.preset.evals)
    return f"{counts} a job at equal fractions of its length (which tells a rule the length)"


def _estimates(setting: Setting) -> str:
    sd = setting.preset.estimate_sd
    told = "exact" if sd is None else f"length x lognormal(sd {sd:g})"
    return f"{told}; past its estimate SRTF counts a job for {FLOOR_SHARE:.0%} of it"


def _figure(row: Row, score: str, scale: float, digits: int) -> str:
    value = row.means[score]
    return "-" if value is None else f"{value * scale:,.{digits}f}"


def _change(row: Row, score: str) -> str:
    change = row.changes.get(score)
    return "" if change is None else told(change)


def told(change: Estimate) -> str:
    """Return a change with interval and p-value as text: `-9.4 % [-10.1, -8.7] p = .001`."""
    if change.p_value is None:
        return f"{change.mean:+.1f} % (one seed)"
    p = "p < .001" if change.p_value < 0.001 else f"p = {change.p_value:.3f}"
    return f"{change.mean:+.1f} % [{change.low:+.1f}, {change.high:+.1f}] {p}"


def aligned(table: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table, first column to the left, the others to the right."""
    cells = [list(row) for row in table]
    widths = [max(len(row[place]) for row in cells) for place in range(len(cells[0]))]
    return [
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
