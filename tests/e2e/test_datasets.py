"""Jobs that log two datasets' evals under one name, on a real Slurm cluster and a real MLflow server."""

from collections.abc import Callable

import pytest
from demo.rig import users

from evalstopd.core.intent import State
from tests.e2e.site import FALL, RISE, Site

pytestmark = [pytest.mark.slurm, pytest.mark.mlflow]


def test_the_dataset_that_each_owner_names_decides_and_without_one_nothing_is_done(
    make_site: Callable[..., Site],
) -> None:
    """Three jobs with the same evals: falling on `clean`, rising on `noisy`."""
    site = make_site()
    falling, rising, silent = (
        site.train(users.ALICE, FALL, "--gpus=1", "--nodes=1", words=words, pace_s=0.5, more=f"--beside {RISE}")
        for words in ("evalstop_dataset=clean", "evalstop_dataset=noisy@n", "")
    )
    site.wait(lambda: any(each.state is State.CONFIRMED for each in site.intents(falling)), "the stop")
    site.wait(lambda: site.evals(rising) == 8, "all evals read")
    site.wait(lambda: (silent, "several-series") in {line[:2] for line in site.remarks()}, "the refusal")

    (intent,) = site.intents(falling)
    assert (intent.evidence.dataset, intent.evidence.best_step) == ("clean@c", 30)
    assert site.accounted(falling) == "CANCELLED"
    site.wait(lambda: "evalstop.dataset" in site.run(intent.evidence.run_id)["tags"], "the tags")
    assert (site.state(rising), site.state(silent)) == ("RUNNING", "RUNNING")
    watch = site.watch(rising)
    assert watch is not None
    assert (watch.dataset_now, watch.best_score) == ("noisy@n", 0.8)
    (text,) = [line[2] for line in site.remarks() if line[:2] == (silent, "several-series")]
    assert "2 datasets: clean (digest c), noisy (digest n)" in text
    assert {code for job, code, _ in site.remarks() if job != silent} <= {"early-warning", "early-warning-told"}
    again = site.service.command("audit", "replay")
    assert (again.returncode, "differences: 0" in again.stdout) == (0, True)
    assert "metric eval/score of dataset noisy@n (max)" in site.service.command("explain", rising).stdout


def test_a_dataset_that_lags_behind_decides_where_it_is_chosen_and_without_a_choice_nothing_is_done(
    make_site: Callable[..., Site],
) -> None:
    """Two healthy jobs: `noisy` rises from .50, `clean` from .90 and three evals later; a mixture of them falls."""
    site = make_site()
    low, high = (",".join(str(base + number / 100) for number in range(10)) for base in (0.5, 0.9))
    chosen, silent = (
        site.train(users.ALICE, high, "--gpus=1", "--nodes=1", words=words, pace_s=1.0, more=f"--beside {low} --lag 3")
        for words in ("evalstop_dataset=clean", "")
    )
    site.wait(lambda: site.evals(chosen) == 7, "all evals read")
    site.wait(lambda: (silent, "several-series") in {line[:2] for line in site.remarks()}, "the refusal")

    watch = site.watch(chosen)
    assert watch is not None
    assert (watch.dataset_now, watch.best_step, watch.best_score) == ("clean@c", 70, 0.96)
    assert (site.state(chosen), site.state(silent)) == ("RUNNING", "RUNNING")
    assert (site.intents(chosen), site.intents(silent)) == ((), ())
