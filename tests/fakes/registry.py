"""A small model registry: a version once for each checkpoint, outages, refusals, and answers lost with a process."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from evalstopd.core.registry import model_name
from evalstopd.ports import Promoted, Registered


@dataclass(slots=True)
class FakeRegistry:
    """The Registry port over a dictionary: model, then the intents its versions are of."""

    template: str = "evalstop-{cluster}-{job}"
    versions: dict[str, list[Promoted]] = field(default_factory=dict)
    aliases: dict[str, int] = field(default_factory=dict)
    down: bool = False
    refuses: str = ""
    asked: list[str] = field(default_factory=list)
    waiting: list[Registered] = field(default_factory=list)

    def register(self, checkpoints: Sequence[Promoted]) -> None:
        """Register at once; the answers wait."""
        for each in checkpoints:
            self.asked.append(each.intent_id)
            self.waiting.append(self._answer(each))

    def registered(self) -> Sequence[Registered]:
        """Hand over the answers."""
        found, self.waiting = self.waiting, []
        return found

    def die(self) -> None:
        """Forget the answers, as a process does that ends."""
        self.waiting.clear()

    def _answer(self, checkpoint: Promoted) -> Registered:
        if self.down:
            return Registered(checkpoint.intent_id, later="MLflow does not answer")
        if self.refuses:
            return Registered(checkpoint.intent_id, refused=self.refuses)
        name = model_name(self.template, checkpoint.key, checkpoint.account)
        held = self.versions.setdefault(name, [])
        if checkpoint.intent_id not in [each.intent_id for each in held]:
            held.append(checkpoint)
        version = 1 + [each.intent_id for each in held].index(checkpoint.intent_id)
        self.aliases[name] = max(version, self.aliases.get(name, 0))
        return Registered(checkpoint.intent_id, where=f"models:/{name}/{version}")
