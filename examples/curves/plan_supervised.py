"""Supervised sources: wrong labels, few items, restarts, fine-tuning; each beside one that is held."""

from typing import Any

from .source import Source
from .supervised import Digits, Documents, Supervised, Task

_DIGITS, _DOCUMENTS = Digits(blur=0.7), Documents(words=12)


def sources() -> tuple[Source, ...]:
    return (
        _accuracy("digits clean", _DIGITS, pushed=False, evals=30, items=500),
        _accuracy("digits wrong=.4", _DIGITS, pushed=True, evals=30, items=500, wrong=0.4, learning_rate=2e-3),
        _accuracy("digits wrong=.2 seen=60", _DIGITS, pushed=True, evals=24, items=500, wrong=0.2, seen=60, epochs=2),
        _accuracy("digits held", _DIGITS, pushed=False, evals=30, items=500, wrong=0.2, decay=3.0, dropout=0.5),
        _accuracy("digits restarts", _DIGITS, pushed=False, evals=32, items=600, restart=8, learning_rate=0.1),
        _accuracy("digits long", _DIGITS, pushed=True, evals=40, items=400, wrong=0.2, hidden=256, epochs=3),
        _accuracy("digits tuned on wrong", _DIGITS, pushed=True, evals=20, items=300, wrong=0.5, pretrained=10),
        _accuracy("digits tuned", _DIGITS, pushed=False, evals=20, items=300, pretrained=5),
        _loss("digits loss", _DIGITS, pushed=True, evals=24, items=400, wrong=0.2, epochs=2),
        _loss("digits loss held", _DIGITS, pushed=False, evals=24, items=700, decay=1.0, dropout=0.5),
        _accuracy("documents clean", _DOCUMENTS, pushed=False, evals=16, items=600),
        _accuracy("documents wrong=.3", _DOCUMENTS, pushed=True, evals=30, items=500, wrong=0.3),
        _accuracy("documents linear", _DOCUMENTS, pushed=False, evals=24, items=600, wrong=0.2, hidden=0),
        _accuracy(
            "documents tuned on wrong", _DOCUMENTS, pushed=True, evals=12, items=300, wrong=0.5, pretrained=6, epochs=2
        ),
        _loss("documents loss", _DOCUMENTS, pushed=True, evals=24, items=500, wrong=0.1),
        _loss("documents loss held", _DOCUMENTS, pushed=False, evals=30, items=600, hidden=0),
    )


def _accuracy(name: str, task: Task, *, pushed: bool, **changes: Any) -> Source:
    return Source(name, _training(task, changes), pushed, "eval_accuracy")


def _loss(name: str, task: Task, *, pushed: bool, **changes: Any) -> Source:
    return Source(name, _training(task, changes | {"loss": True}), pushed, "eval_loss", higher_is_better=False)


def _training(task: Task, changes: dict[str, Any]) -> Supervised:
    return Supervised(task, **({"epochs": 1, "seen": 150} | changes))
