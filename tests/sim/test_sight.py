"""What rules are shown, and that the drive asks core's own fold."""

from evalstopd_sim.presets import PRESETS
from evalstopd_sim.sight import evals, first_stop, first_view, later_view, loss_at, loss_drop_per_s
from evalstopd_sim.workload import Workload
from hypothesis import given
from hypothesis import strategies as st

from evalstopd.core.detectors import DETECTORS, Stop, detector, fold

from .worlds import job

JOBS = list(Workload(PRESETS["paper"], 64, 5).jobs(60))


@given(st.sampled_from(JOBS), st.sampled_from(sorted(DETECTORS)))
def test_the_first_stop_is_the_first_stop_of_the_daemons_fold(hidden, spec) -> None:
    rule, view = detector(spec), first_view(hidden)

    found = first_stop(rule, hidden, view)

    verdicts = fold(rule, view, evals(hidden))
    stops = [(place, verdict) for place, verdict in enumerate(verdicts) if isinstance(verdict, Stop)]
    assert found == (stops[0] if stops else None)


def test_a_view_shows_nothing_but_what_a_scheduler_sees() -> None:
    view = first_view(job("a", 3.0, 4, 1000.0, estimate_s=700.0, hacking=True, peak_s=500.0))

    assert (view.job_id, view.submitted_s, view.gpus, view.kind, view.estimate_s) == ("a", 3.0, 4, "rlhf", 700.0)
    assert (view.attained_s, view.progress, view.evals) == (0.0, None, ())


def test_a_later_view_differs_in_what_has_happened_only() -> None:
    view = first_view(job("a"))

    assert later_view(later_view(view, 5.0, running=True), 0.0, running=False) == view


def test_losses_start_at_one_and_the_drop_is_per_second_of_work() -> None:
    hidden = job("a", duration_s=100.0, loss_rate=4.0, marks=(25.0, 50.0))

    assert loss_at(hidden, 0.0) == 1.0
    assert loss_drop_per_s(hidden, 0) is None
    assert loss_drop_per_s(hidden, 1) == (1.0 - loss_at(hidden, 25.0)) / 25.0
    assert loss_drop_per_s(hidden, 2) == (loss_at(hidden, 25.0) - loss_at(hidden, 50.0)) / 25.0
