"""Giving up a stop: committed, shown in the run, and told to the owner to whom the stop was announced.

He was told that his job is to be stopped; where it goes on after all, nothing else takes that back.
"""

from typing import Any

from evalstopd.core.intent import ANNOUNCED, Intent, State
from evalstopd.core.model import Rung
from evalstopd.core.words import not_after_all
from evalstopd.loop.ledger import NOTHING_ELSE
from evalstopd.loop.scene import Scene
from evalstopd.loop.telling import GIVEN_UP
from evalstopd.ports import Changes


def give_up(
    scene: Scene,
    intent: Intent,
    state: State,
    why: str,
    *,
    over: bool = False,
    also: Changes = NOTHING_ELSE,
    **fields: Any,
) -> Intent:
    """Close an intent without a stop; `over` tells that nobody is to hear of it. Its owner's own veto he knows."""
    tells = not over and state is State.ABANDONED and _announced(intent) and not scene.ports.kill_switch.engaged()
    telling = GIVEN_UP if tells else intent.telling
    intent = scene.moved(intent, state, why, also=also, note=why, telling=telling, **fields)
    scene.tag_later(intent)
    return _told(scene, intent, why) if tells else intent


def _announced(intent: Intent) -> bool:
    return intent.rung >= Rung.ENFORCE and intent.state in ANNOUNCED


def _told(scene: Scene, intent: Intent, why: str) -> Intent:
    receipt = scene.tell(intent, GIVEN_UP, "your job is not stopped after all", not_after_all(intent, why))
    return intent if receipt is None else scene.ledger.note(intent, receipt.event, receipt.text, telling="")
