"""The scores of one run: what the paper reports, and what it leaves out."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

from evalstopd_sim.tally import Tally

_HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class Scores:
    """Figures of one run; None where they are not defined (a rule that stopped nothing has no precision).

    JCT from the submission to the end, over jobs that are over; `jct_kept` over those not stopped. W1:
    GPU-hours that hacking jobs ran past their true peak. W2: W1 and the preemption overhead of all jobs. W3:
    W2 and all GPU-hours of healthy jobs that were stopped. W4: GPU-hours (and number) of hacking jobs stopped
    before their peak. `fpr` is over all jobs that do not hack, `fpr_healthy_rlhf` over healthy RLHF jobs.
    """

    jobs: float
    unfinished: float
    cancelled: float
    stopped: float
    jct_mean_s: float | None
    jct_median_s: float | None
    jct_p95_s: float | None
    jct_kept_mean_s: float | None
    makespan_s: float
    utilisation: float
    preemptions: float
    overhead_gpu_h: float
    w1_gpu_h: float
    w2_gpu_h: float
    w3_gpu_h: float
    w4_gpu_h: float
    w4_jobs: float
    precision: float | None
    recall: float | None
    recall_before_last_eval: float | None
    f1: float | None
    fpr: float | None
    fpr_healthy_rlhf: float | None
    hacking_share_of_rlhf: float | None
    delay_evals: float | None
    delay_h: float | None
    saved_share_past_peak: float | None
    regret_best: float | None
    regret_k_before: float | None
    regret_best3: float | None
    false_stop_gpu_h: float
    false_stop_lost_level: float | None


def scores(tally: Tally) -> Scores:
    """Return the scores of a run that is over."""
    return Scores(**_completion(tally), **_waste(tally), **_judgement(tally), **_losses(tally))


def _completion(tally: Tally) -> dict[str, Any]:
    """Return how many jobs came to which end, and when."""
    done = sorted(jct for jct in tally.jct_s if not isnan(jct))
    kept = [jct for jct, cut in zip(tally.jct_s, tally.stopped, strict=True) if not cut and not isnan(jct)]
    makespan_s = max(0.0, tally.last_end_s - tally.first_submit_s)
    return {
        "jobs": len(tally.jct_s),
        "unfinished": len(tally.jct_s) - tally.over,
        "cancelled": tally.cancelled,
        "stopped": sum(tally.stopped),
        "jct_mean_s": mean(done),
        "jct_median_s": percentile(done, 0.5),
        "jct_p95_s": percentile(done, 0.95),
        "jct_kept_mean_s": mean(kept),
        "makespan_s": makespan_s,
        "utilisation": tally.busy / (tally.gpus * makespan_s) if makespan_s else 0.0,
    }


def _waste(tally: Tally) -> dict[str, Any]:
    """Return the GPU-hours that were of no use, in the four ways of counting them."""
    w1, overhead = tally.past_peak / _HOUR_S, tally.overhead / _HOUR_S
    false_h = tally.false_work / _HOUR_S
    return {
        "preemptions": tally.preemptions,
        "overhead_gpu_h": overhead,
        "w1_gpu_h": w1,
        "w2_gpu_h": w1 + overhead,
        "w3_gpu_h": w1 + overhead + false_h,
        "w4_gpu_h": tally.early_work / _HOUR_S,
        "w4_jobs": tally.early,
        "false_stop_gpu_h": false_h,
    }


def _judgement(tally: Tally) -> dict[str, Any]:
    """Return how often the rule was right."""
    precision, recall = share(tally.caught, tally.caught + tally.false), share(tally.caught, tally.hacking)
    return {
        "precision": precision,
        "recall": recall,
        "recall_before_last_eval": share(tally.caught - tally.caught_last, tally.hacking),
        "f1": _f1(precision, recall),
        "fpr": share(tally.false, tally.healthy_rlhf + tally.others),
        "fpr_healthy_rlhf": share(tally.false, tally.healthy_rlhf),
        "hacking_share_of_rlhf": share(tally.hacking, tally.hacking + tally.healthy_rlhf),
    }


def _losses(tally: Tally) -> dict[str, Any]:
    """Return what came too late, and what was lost."""
    return {
        "delay_evals": share(tally.delay_evals, tally.caught),
        "delay_h": share(tally.delay_s / _HOUR_S, tally.caught),
        "saved_share_past_peak": 1 - tally.past_peak / tally.post_peak if tally.post_peak > 0 else None,
        "regret_best": share(tally.regret[0], tally.regretted),
        "regret_k_before": share(tally.regret[1], tally.regretted),
        "regret_best3": share(tally.regret[2], tally.regretted),
        "false_stop_lost_level": share(tally.lost_level, tally.false),
    }


def kept_mean_s(base: Tally, treated: Tally) -> float | None:
    """Return the base's mean JCT over the jobs that the treated run did not stop: the fair pair of `jct_kept`."""
    pairs = zip(base.jct_s, treated.stopped, strict=True)
    return mean([jct for jct, cut in pairs if not cut and not isnan(jct)])


def share(part: float, whole: float) -> float | None:
    """Return part / whole; None for an empty whole."""
    return part / whole if whole else None


def mean(values: Sequence[float]) -> float | None:
    """Return the mean; None for no values."""
    return sum(values) / len(values) if values else None


def percentile(ordered: Sequence[float], p: float) -> float | None:
    """Return the p-quantile of sorted values, linear between neighbours; None for no values."""
    if not ordered:
        return None
    at = p * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def _f1(precision: float | None, recall: float | None) -> float | None:
    if precision is None or recall is None or precision + recall == 0:
        return None
    return 2 * precision * recall / (precision + recall)
