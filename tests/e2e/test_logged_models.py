"""Jobs that log their checkpoints as models and save no file, on a real Slurm cluster and a real MLflow server."""

from collections.abc import Callable

import pytest
from demo.rig import users

from evalstopd.core.intent import State
from evalstopd.core.words import LOGGED
from tests.e2e.site import FALL, Site

pytestmark = [pytest.mark.slurm, pytest.mark.mlflow]
MakeSite = Callable[..., Site]


def test_where_logged_models_count_the_job_is_stopped_and_its_best_one_is_the_version(make_site: MakeSite) -> None:
    site = make_site(enforce={"logged_models": True}, promotion={"registry": True})
    job = site.train(users.ALICE, FALL, more="--models")
    site.wait(lambda: any(each.state is State.CONFIRMED for each in site.intents(job)), "the stop")

    (intent,) = site.intents(job)
    assert (intent.evidence.trigger_step, intent.evidence.kept_step) == (50, 30)
    assert intent.kept_path.startswith("models:/m-")
    assert site.accounted(job) == "CANCELLED"
    site.wait(lambda: "evalstop.model" in site.run(intent.evidence.run_id)["tags"], "the model version")
    tags = site.run(intent.evidence.run_id)["tags"]
    assert (tags["evalstop.checkpoint"], tags["evalstop.checkpoint_kind"]) == (intent.kept_path, LOGGED)
    assert tags["evalstop.model"].startswith("models:/evalstop-")


def test_by_default_such_a_job_is_only_warned_of_and_its_run_names_the_model(make_site: MakeSite) -> None:
    site = make_site()
    job = site.train(users.ALICE, FALL, more="--models")
    site.wait(lambda: any(each.state is State.ABANDONED for each in site.intents(job)), "the end of the intent")
    site.wait(lambda: site.evals(job) == 8, "all evals read")

    assert site.state(job) == "RUNNING"
    (intent,) = site.intents(job)
    assert "which no stop rests on here" in intent.note
    site.wait(lambda: "evalstop.checkpoint" in site.run(intent.evidence.run_id)["tags"], "the tags")
    assert site.run(intent.evidence.run_id)["tags"]["evalstop.checkpoint_kind"] == LOGGED
