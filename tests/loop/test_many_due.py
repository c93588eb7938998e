"""More runs than a pass reads: who has something open comes first, and nobody is left out for good."""

import pytest

from evalstopd.loop import reading
from tests.fakes.world import RULES, World


def test_those_with_something_open_come_first_and_all_are_read_in_turn(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reading, "MOST_A_PASS", 3)
    world = World(RULES)
    jobs = [world.train(f"r{n}", gpus=1) for n in range(8)]
    for step, score in enumerate((0.1, 0.8, 0.5, 0.3), 1):
        for n, job in enumerate(jobs):
            world.evaluate(job, f"r{n}", step * 10, score if n == 7 else step / 10)
        for _ in range(4):
            before = len(world.tracker.reads)
            world.tick()
            assert len(world.tracker.reads) - before <= 3 + 1
    assert {f"r{n}" for n in range(8)} <= set(world.tracker.reads)
    assert world.cluster.cancelled == [(jobs[7], 0)]
