"""A pin is dropped by its path alone, long after the run and the job that could tell where it lies are gone."""

import os
import shutil

import pytest

from evalstopd.core.model import JobKey
from evalstopd.core.watch import Pin, PinState
from evalstopd.upkeep.pins import place_of
from tests.keeper.world import Keeper, World

pytestmark = pytest.mark.root


@pytest.mark.parametrize("deep", [True, False], ids=["in a folder of the owner's", "in a folder of another's"])
def test_a_pin_is_dropped_by_its_path(place: World, ask: Keeper, deep: bool) -> None:
    """The keeper puts pins beside the output folder where that place is the owner's, else into it."""
    place.save()
    if not deep:
        parent = place.run.parent
        os.chown(parent, 0, 0)
        parent.chmod(0o755)
    answer = ask(place.ask("pin"))
    assert answer["ok"], answer
    assert answer["path"].startswith(f"{place.run}/") is not deep
    asked = place.ask("drop")
    key = JobKey("c", "7", asked["uid"], 1)
    made = place_of(Pin(key, 200, 0.5, PinState.PINNED, 1.0, path=answer["path"]))
    shutil.rmtree(place.run / "checkpoint-200")
    assert made is not None
    dropped = ask({"verb": "drop", "uid": made.uid, "output_dir": made.output_dir, "pin": made.pin, "step": made.step})

    assert dropped["ok"], dropped
    home = place.root.rglob("step-200")
    assert list(home) == []
