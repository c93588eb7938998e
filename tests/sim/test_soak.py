"""A short soak: the long one is `make soak`. What its account can find is tested too."""

from dataclasses import replace
from pathlib import Path

from bench.soak import Account, Result, Sample, soak


def test_a_few_hours_lose_no_eval_and_no_file_descriptor(tmp_path: Path) -> None:
    found = soak(tmp_path, hours=12, jobs=40, poll_s=300.0)
    assert found.account.expected > 20
    assert found.stops > 0
    assert [fault for fault in found.faults if "memory" not in fault] == []


def test_each_thing_that_does_not_hold_is_named() -> None:
    samples = tuple(Sample(hour, 60.0, 6, 10 * hour) for hour in range(6))
    good = Result(samples, Account(9, 100, 0, 0), stops=1, cpu_s=1.0)
    assert good.faults == []
    assert replace(good, account=Account(9, 100, 1, 2)).faults == ["1 evals are missing", "2 evals are stored twice"]
    assert replace(good, account=Account(0, 0, 0, 0)).faults == ["no eval was logged at all"]
    leaky = tuple(replace(each, memory_mb=60.0 + each.hour) for each in samples)
    assert replace(good, samples=leaky).faults == ["memory grows by 1.00 MB an hour"]
    open_files = (*samples[:-1], replace(samples[-1], descriptors=7))
    assert replace(good, samples=open_files).faults == ["the number of file descriptors changes: [6, 7]"]


def test_the_first_hour_may_grow() -> None:
    memory = (20.0, 60.0, 60.0, 60.0, 60.0)
    samples = tuple(Sample(hour, mb, 6, 10) for hour, mb in enumerate(memory))
    assert Result(samples, Account(9, 100, 0, 0), 1, 1.0).slope == 0.0
