"""The report: published, ours and the difference side by side, and what must be said beside them."""

from collections.abc import Mapping, Sequence
from html import escape

from evalstopd_sim.experiments import Experiment
from evalstopd_sim.published import CLAIMS, Claim
from evalstopd_sim.rows import Row
from evalstopd_sim.show import told

Found = Mapping[str, Mapping[str, Sequence[Row]]]
Table = list[tuple[str, ...]]

TITLE = "EvalStop: what the paper publishes, and what this simulator gives"
CAVEATS = (
    (
        "The paper publishes no code and few numbers of its simulator. Preset `paper` was fitted by us to the "
        "published figures with many free choices: a match shows that the figures are possible, not that the "
        "paper used these numbers."
    ),
    (
        "The FPR is printed with both denominators: all jobs that do not hack (the paper's, by the algebra of "
        "its figures), and healthy RLHF jobs, the only ones a rule can stop wrongly."
    ),
    (
        "Evals at equal fractions of a run, as in the paper, tell a rule the run's length. Experiment "
        "evals-per-job has points with evals at fixed intervals of running too."
    ),
    (
        "About a third of what k = 2 catches with 8 evals a job it catches at the last eval, which saves "
        "nothing: see the recall before the last eval."
    ),
    (
        "Unfinished jobs are in no JCT; a false stop shortens the JCT over all jobs, so the JCT of the jobs "
        "that were not stopped is in the tables as well."
    ),
    "Growing and shrinking of elastic jobs is taken to cost nothing.",
)
_HEADS = ("at", "base", "rule", "seeds", "JCT", "W1", "W3", "precision", "recall", "FPR all", "FPR healthy RLHF")


def markdown_report(chosen: Sequence[Experiment], found: Found, seeds: int) -> str:
    """Return the report as Markdown."""
    parts = [
        f"# {TITLE}",
        f"{seeds} seeds, paired across schedulers; changes with 95 % intervals and the paired t-test.",
    ]
    parts += [f"* {line}" for line in CAVEATS]
    parts += ["## Where k = 2 does harm", *(f"* {line}" for line in harm(found))]
    for experiment in chosen:
        points = found[experiment.name]
        parts += [f"## {experiment.name}: {experiment.title}", _cluster(experiment)]
        parts += [_markdown(table) for table in _tables(experiment, points)]
        parts.append(f"![{experiment.title}]({experiment.name}/plot.svg)")
    return "\n\n".join(parts) + "\n"


def html_report(chosen: Sequence[Experiment], found: Found, seeds: int) -> str:
    """Return the report as one HTML page; all text is escaped."""
    parts = [f"<h1>{escape(TITLE)}</h1>", f"<p>{seeds} seeds, paired across schedulers.</p>", _list(CAVEATS)]
    parts += ["<h2>Where k = 2 does harm</h2>", _list(harm(found))]
    for experiment in chosen:
        points = found[experiment.name]
        parts += [
            f"<h2>{escape(experiment.name)}: {escape(experiment.title)}</h2>",
            f"<p>{escape(_cluster(experiment))}</p>",
        ]
        parts += [_table(table) for table in _tables(experiment, points)]
        parts.append(f'<img src="{escape(experiment.name)}/plot.svg" alt="{escape(experiment.title)}">')
    return _PAGE.format(title=escape(TITLE), body="\n".join(parts))


def harm(found: Found) -> list[str]:
    """Return the lines that say where the paper's rule costs more than it saves, from the figures at hand."""
    lines = ["On a flat stretch of any noise the rule fires after 7.9 evals on average, whatever the noise's size."]
    for name, points in found.items():
        for at, each in points.items():
            for row in each:
                waste, fpr = row.changes.get("w3_gpu_h"), row.means["fpr_healthy_rlhf"]
                if row.label == "k-declines(2)" and waste and fpr is not None and (waste.mean > 0 or fpr > 0.05):
                    lines.append(
                        f"{name} at {at}, over {row.arm.base}: stops {100 * fpr:.1f} % of healthy RLHF jobs; "
                        f"wasted compute W3 {waste.mean:+.1f} %; a false stop loses {_lost(row)} of true score"
                    )
    return lines


def _lost(row: Row) -> str:
    lost = row.means["false_stop_lost_level"]
    return "an unknown amount" if lost is None else f"{lost:.3f}"


def _cluster(experiment: Experiment) -> str:
    return "; ".join(dict.fromkeys(point.setting.cluster.words for point in experiment.points))


def _tables(experiment: Experiment, points: Mapping[str, Sequence[Row]]) -> list[Table]:
    claims = CLAIMS[experiment.name]
    return [*([_compared(claims, points)] if claims else []), _all(points)]


def _compared(claims: Sequence[Claim], points: Mapping[str, Sequence[Row]]) -> Table:
    table: Table = [("figure", "published", "ours", "difference")]
    for claim in claims:
        ours = claim.ours(points)
        shown = "-" if ours is None else f"{ours:+.1f} %" if claim.change else f"{ours:.1f} %"
        table.append((claim.what, claim.published, shown, claim.difference(ours)))
    return table


def _all(points: Mapping[str, Sequence[Row]]) -> Table:
    table: Table = [_HEADS]
    for at, each in points.items():
        for row in each:
            changes = tuple(_change(row, name) for name in ("jct_mean_s", "w1_gpu_h", "w3_gpu_h"))
            rates = tuple(_rate(row.means[name]) for name in ("precision", "recall", "fpr", "fpr_healthy_rlhf"))
            table.append((at, row.arm.base, row.label, str(row.seeds), *changes, *rates))
    return table


def _change(row: Row, name: str) -> str:
    if name in row.changes:
        return told(row.changes[name])
    value = row.means[name]
    if value is None:
        return "-"
    return f"{value / 3600:.2f} h" if name.endswith("_s") else f"{value:.0f} GPU-h"


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def _markdown(table: Table) -> str:
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in table]
    return "\n".join([lines[0], "|" + "---|" * len(table[0]), *lines[1:]])


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in table[0])
    body = "\n".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table[1:])
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>"


def _list(lines: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 15px/1.5 sans-serif; max-width: 75em; margin: 2em auto; padding: 0 1em; }}
table {{ border-collapse: collapse; margin: 1em 0; font-size: 13px; }}
th, td {{ border-bottom: 1px solid #ccc; padding: .2em .7em; text-align: left; }}
img {{ max-width: 100%; }}
</style></head><body>
{body}
</body></html>
"""
