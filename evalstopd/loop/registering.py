"""Published checkpoints become versions of registered models where the site wants that; no stop waits for it.

That it is wanted was recorded with the promotion; the port makes no second version, however often it is asked. So
after any crash the same question is put again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evalstopd.core.intent import Intent
from evalstopd.core.registry import REFUSED, WAITING, asks, version_tags
from evalstopd.loop.scene import Scene
from evalstopd.ports import Promoted, Registered

_PATIENCE_S = 7 * 86_400.0
_ONE_WAY = "its tags do not name the job"


@dataclass(frozen=True, slots=True)
class RegistryDesk:
    """What one pass asks of the registry, and books of its answers."""

    scene: Scene

    def serve(self, intents: Sequence[Intent]) -> list[Intent]:
        """Book the answers that came, ask for what is still wanted, and return the intents as they are then."""
        registry = self.scene.ports.registry
        if registry is None or self.scene.ports.kill_switch.engaged():
            return list(intents)
        answers = {each.intent_id: each for each in registry.registered()}
        after = [self._booked(intent, answers) if asks(intent) else intent for intent in intents]
        wanted = [self._promoted(intent) for intent in after if asks(intent)]
        if wanted and not self.scene.ports.should_stop():
            registry.register(wanted)
        return after

    def _booked(self, intent: Intent, answers: Mapping[str, Registered]) -> Intent:
        answer = answers.get(intent.id)
        if not self.scene.may_write(intent):
            return self._refused(intent, f"nothing was written to the registry for the run: {_ONE_WAY}")
        if answer is not None and answer.where:
            intent = self.scene.ledger.note(intent, "registered", f"it is {answer.where}", model=answer.where)
            self.scene.tag_later(intent)
            return intent
        if answer is not None and answer.refused:
            return self._refused(intent, answer.refused)
        if self.scene.ledger.now_s - intent.changed_s > _PATIENCE_S:
            return self._refused(intent, "the registry could not be reached for a week")
        if answer is not None and answer.later and intent.model != WAITING:
            return self.scene.ledger.note(intent, "registry-waits", answer.later, model=WAITING)
        return intent

    def _refused(self, intent: Intent, why: str) -> Intent:
        return self.scene.ledger.note(intent, "not-registered", f"run tags only: {why}", model=REFUSED)

    def _promoted(self, intent: Intent) -> Promoted:
        evidence = intent.evidence
        return Promoted(
            intent.id, intent.key, intent.account, evidence.run_id, evidence.kept_step, intent.kept_path,
            version_tags(intent),
        )  # fmt: skip
