"""What every model registry behind Registry must do: subclass, and give a world of your own."""

from collections.abc import Sequence
from typing import Protocol

from evalstopd.core.model import JobKey
from evalstopd.ports import Promoted, Registered

KEY = JobKey("c", "7", 1001, 1_000)


class RegistryWorld(Protocol):
    """A registry, and a run with logged models for the steps 20 and 30."""

    def make_run(self) -> str:
        """Make a run with a checkpoint for each of the two steps; return its id."""

    def ask(self, checkpoints: Sequence[Promoted]) -> dict[str, Registered]:
        """Ask, and wait for all answers."""

    def restart(self) -> None:
        """Let another process go on."""

    def versions(self, name: str) -> list[str]:
        """Return the runs of a model's versions, the first version first."""

    def alias(self, name: str) -> int:
        """Return the version that `evalstop-best` names."""


def promoted(run_id: str, step: int = 20, key: JobKey = KEY, life: int = 0) -> Promoted:
    return Promoted(f"{key.text}:{life}:{step}", key, "ml", run_id, step, "/nowhere/best", {"evalstop.step": str(step)})


class RegistryContract:
    """The contract; a subclass has a fixture `world`, each with an empty registry for the job's model."""

    def test_a_checkpoint_becomes_one_version_with_the_alias_however_often_it_is_asked_for(self, world: RegistryWorld):
        one = promoted(world.make_run())
        for _ in range(2):
            (answer,) = world.ask([one]).values()
            assert (answer.where, answer.refused, answer.later) == ("models:/evalstop-c-7/1", "", "")
            world.restart()
        assert world.versions("evalstop-c-7") == [one.run_id]
        assert world.alias("evalstop-c-7") == 1

    def test_the_alias_moves_to_a_later_checkpoint_and_never_back(self, world: RegistryWorld):
        run_id = world.make_run()
        first, second = promoted(run_id, 20), promoted(run_id, 30, life=1)
        world.ask([first])
        assert next(iter(world.ask([second]).values())).where == "models:/evalstop-c-7/2"
        assert next(iter(world.ask([first]).values())).where == "models:/evalstop-c-7/1"
        assert world.alias("evalstop-c-7") == 2

    def test_each_job_has_a_model_of_its_own(self, world: RegistryWorld):
        run_id = world.make_run()
        other = JobKey("c", "8_1", 1001, 1_000)
        answers = world.ask([promoted(run_id), promoted(run_id, key=other)])
        assert {each.where for each in answers.values()} == {"models:/evalstop-c-7/1", "models:/evalstop-c-8_1/1"}
