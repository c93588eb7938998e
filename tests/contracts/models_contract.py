"""What every tracker behind Models must do: subclass, and give a world of your own."""

from collections.abc import Mapping
from typing import Protocol

import pytest

from evalstopd.errors import CheckpointIncomplete, CheckpointMissing, Rejected
from evalstopd.ports import ModelQuery, Models

METRIC = "eval/accuracy"
FILES = {"MLmodel": 300, "data/model.pt": 5_000, "data/code/train.py": 7}


class World(Protocol):
    """A tracker with runs that have logged models."""

    models: Models

    def make_run(self) -> str:
        """Make a run."""

    def log_model(self, run_id: str, step: int, name: str = "model", *, ready: bool = True) -> str:
        """Make a logged model of a run; return its id."""

    def score(self, run_id: str, model_id: str, step: int, value: float) -> None:
        """Log METRIC with a logged model."""

    def upload(self, model_id: str, files: Mapping[str, int]) -> None:
        """Add files of these sizes in bytes to a logged model."""

    def delete(self, model_id: str) -> None:
        """Delete a logged model."""


class ModelsContract:
    """The contract; not collected itself."""

    @pytest.fixture
    def world(self) -> World:
        raise NotImplementedError

    def logged(self, world: World, run_id: str, step: int, name: str = "model") -> str:
        model_id = world.log_model(run_id, step, name)
        world.upload(model_id, FILES)
        return model_id

    def test_the_steps_model_is_found_with_all_its_files(self, world: World):
        run_id = world.make_run()
        made = {step: self.logged(world, run_id, step) for step in (10, 20, 30)}
        found = world.models.find(ModelQuery(run_id, 20))
        assert (found.uri, found.files, found.size) == (f"models:/{made[20]}", 3, sum(FILES.values()))
        assert world.models.verify(run_id, found.uri) == found

    def test_a_run_without_models_and_a_step_without_one_have_none(self, world: World):
        run_id = world.make_run()
        with pytest.raises(CheckpointMissing):
            world.models.find(ModelQuery(run_id, 20))
        self.logged(world, run_id, 10)
        with pytest.raises(CheckpointMissing):
            world.models.find(ModelQuery(run_id, 20))

    def test_a_model_that_is_still_being_logged_is_incomplete_until_it_is_ready_and_has_files(self, world: World):
        run_id = world.make_run()
        world.upload(world.log_model(run_id, 20, ready=False), FILES)
        with pytest.raises(CheckpointIncomplete):
            world.models.find(ModelQuery(run_id, 20))
        empty = world.log_model(run_id, 20)
        with pytest.raises(CheckpointIncomplete):
            world.models.find(ModelQuery(run_id, 20))
        world.upload(empty, FILES)
        assert world.models.find(ModelQuery(run_id, 20)).uri == f"models:/{empty}"

    def test_of_two_of_a_step_the_newer_is_found(self, world: World):
        run_id = world.make_run()
        self.logged(world, run_id, 20)
        newer = self.logged(world, run_id, 20)
        assert world.models.find(ModelQuery(run_id, 20)).uri == f"models:/{newer}"

    def test_huggingfaces_callback_tells_the_step_by_the_name_alone(self, world: World):
        """It notes step 0 of each: that says nothing, not even that it is of step 0."""
        run_id = world.make_run()
        made = {step: self.logged(world, run_id, 0, f"checkpoint-{step}") for step in (10, 20)}
        assert world.models.find(ModelQuery(run_id, 20)).uri == f"models:/{made[20]}"
        self.logged(world, run_id, 0)
        with pytest.raises(CheckpointMissing):
            world.models.find(ModelQuery(run_id, 0))

    def test_a_model_without_a_step_is_found_by_the_score_that_was_logged_with_it(self, world: World):
        run_id = world.make_run()
        scored = self.logged(world, run_id, 0)
        self.logged(world, run_id, 0)
        world.score(run_id, scored, 20, 0.75)
        query = ModelQuery(run_id, 20, metric=METRIC, score=0.75)
        assert world.models.find(query).uri == f"models:/{scored}"

    def test_a_model_with_another_score_for_the_step_or_made_too_early_is_another_trainings(self, world: World):
        run_id = world.make_run()
        world.score(run_id, self.logged(world, run_id, 20), 20, 0.75)
        with pytest.raises(CheckpointIncomplete):
            world.models.find(ModelQuery(run_id, 20, metric=METRIC, score=0.5))
        with pytest.raises(CheckpointIncomplete):
            world.models.find(ModelQuery(run_id, 20, since_s=2**40, metric=METRIC, score=0.75))
        assert world.models.find(ModelQuery(run_id, 20, metric="other", score=0.5)).files == 3

    def test_another_runs_model_is_never_found_and_never_verified(self, world: World):
        run_id, other = world.make_run(), world.make_run()
        self.logged(world, run_id, 10)
        strangers = self.logged(world, other, 20)
        with pytest.raises(CheckpointMissing):
            world.models.find(ModelQuery(run_id, 20))
        with pytest.raises(Rejected):
            world.models.verify(run_id, f"models:/{strangers}")

    def test_what_was_added_or_deleted_since_shows_at_another_look(self, world: World):
        run_id = world.make_run()
        model_id = self.logged(world, run_id, 20)
        found = world.models.find(ModelQuery(run_id, 20))
        world.upload(model_id, {"later": 1})
        assert world.models.verify(run_id, found.uri).listing != found.listing
        world.delete(model_id)
        with pytest.raises(CheckpointMissing):
            world.models.verify(run_id, found.uri)
        with pytest.raises(CheckpointMissing):
            world.models.find(ModelQuery(run_id, 20))
