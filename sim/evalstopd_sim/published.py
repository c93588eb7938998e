"""What the paper publishes, and nothing else: each figure beside where ours is found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from evalstopd_sim.rows import Row


@dataclass(frozen=True, slots=True)
class Claim:
    """A published figure in per cent, or bounds for one (`low` to `high`). None: not published.

    `change` means the change against the base alone, else the score itself.
    """

    what: str
    at: str
    detector: str
    score: str
    low: float | None
    high: float | None
    change: bool = False

    @property
    def published(self) -> str:
        """Return the published figure as text."""
        if self.low is None or self.high is None:
            return "not published"
        if self.low == self.high:
            return f"{self.low:g} %"
        return f"at least {self.low:g} %" if self.high == inf else f"{self.low:g} to {self.high:g} %"

    def ours(self, rows: Mapping[str, Sequence[Row]]) -> float | None:
        """Return our figure in per cent from the rows of each point; None if it is not defined."""
        row = next((row for row in rows.get(self.at, ()) if row.label == self.detector), None)
        if row is None:
            return None
        if self.change:
            return row.changes[self.score].mean if self.score in row.changes else None
        value = row.means[self.score]
        return None if value is None else 100 * value

    def difference(self, ours: float | None) -> str:
        """Return how far our figure lies from the published one, or from its bounds."""
        if ours is None or self.low is None or self.high is None:
            return "-"
        if self.low != self.high and self.low <= ours <= self.high:
            return "within"
        return f"{ours - (self.low if ours < self.low else self.high):+.1f}"


_K2 = "k-declines(2)"


def _exactly(what: str, at: str, detector: str, score: str, figure: float | None) -> Claim:
    return Claim(what, at, detector, score, figure, figure)


def _main() -> tuple[Claim, ...]:
    stop_at, plateau = "stop-at-oracle(0.65)", "loss-plateau(2,0.0105)"
    return (
        Claim("EvalStop over SRTF-Est: mean JCT", "paper", _K2, "jct_mean_s", -9.4, -9.4, change=True),
        Claim("EvalStop over SRTF-Est: wasted compute (as W3)", "paper", _K2, "w3_gpu_h", -21.8, -21.8, change=True),
        Claim("the same, as W1", "paper", _K2, "w1_gpu_h", None, None, change=True),
        Claim("mean JCT of the jobs not stopped", "paper", _K2, "jct_kept_mean_s", None, None, change=True),
        _exactly("EvalStop: precision", "paper", _K2, "precision", 98.3),
        _exactly("EvalStop: recall", "paper", _K2, "recall", 99.3),
        _exactly("EvalStop: recall before the last eval", "paper", _K2, "recall_before_last_eval", None),
        _exactly("EvalStop: FPR, of all jobs that do not hack", "paper", _K2, "fpr", 1.5),
        _exactly("EvalStop: FPR, of healthy RLHF jobs", "paper", _K2, "fpr_healthy_rlhf", None),
        _exactly("StopAt-0.65 (exact progress): precision", "paper", stop_at, "precision", 57.1),
        _exactly("StopAt-0.65 (exact progress): FPR", "paper", stop_at, "fpr", 64.5),
        Claim("StopAt-0.65: mean JCT (published as similar)", "paper", stop_at, "jct_mean_s", -9.4, -9.4, change=True),
        Claim(
            "StopAt-0.65 on estimates: mean JCT",
            "paper",
            "elapsed-fraction(0.65)",
            "jct_mean_s",
            None,
            None,
            change=True,
        ),
        _exactly("LossPlateau: precision", "paper", plateau, "precision", 57.0),
        _exactly("LossPlateau: recall", "paper", plateau, "recall", 38.3),
        _exactly("LossPlateau: FPR", "paper", plateau, "fpr", None),
    )


def _composability() -> tuple[Claim, ...]:
    told = [
        Claim(f"JCT over {base}", base, _K2, "jct_mean_s", -25.2, -8.9, change=True)
        for base in ("fifo", "sjf-est", "srtf-est", "loss-aware")
    ]
    untold = [
        Claim(f"JCT over {base}", base, _K2, "jct_mean_s", None, None, change=True)
        for base in ("las", "goodput", "slaq")
    ]
    return (*told, *untold)


def _noise() -> tuple[Claim, ...]:
    return (
        _exactly("precision at sigma .01", "0.01", _K2, "precision", 100.0),
        Claim("precision at sigma .05", "0.05", _K2, "precision", 91.0, inf),
        _exactly("precision at sigma .12", "0.12", _K2, "precision", 81.0),
        Claim("wasted compute (W3) at sigma .12", "0.12", _K2, "w3_gpu_h", None, None, change=True),
    )


def _base_rate() -> tuple[Claim, ...]:
    return tuple(
        Claim(f"precision at {share}", share, _K2, "precision", 89.0, inf) for share in ("0.2", "0.4", "0.6", "0.8")
    )


def _not_published(what: str, score: str, *at: str, change: bool = False) -> tuple[Claim, ...]:
    return tuple(Claim(f"{what} at {place}", place, _K2, score, None, None, change) for place in at)


CLAIMS: Mapping[str, tuple[Claim, ...]] = {
    "main": _main(),
    "composability": _composability(),
    "noise": _noise(),
    "base-rate": _base_rate(),
    "threshold": tuple(
        Claim(f"F1 at k = {k} (published: k = 2 is best)", f"{k}", f"k-declines({k})", "f1", None, None)
        for k in range(1, 6)
    ),
    "load": _not_published("JCT", "jct_mean_s", "0.5", "0.7", "0.87", "0.95", change=True),
    "evals-per-job": _not_published("FPR of healthy RLHF jobs", "fpr_healthy_rlhf", "6", "8", "10", "20", "50"),
    "gao": (),
    "real": _not_published("FPR of healthy RLHF jobs", "fpr_healthy_rlhf", "10 evals", "100 evals", "real curves"),
}
