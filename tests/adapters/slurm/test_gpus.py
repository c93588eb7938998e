"""GPU counts from every way that Slurm writes them."""

import pytest

from evalstopd.adapters.slurm.gpus import Tres, gpus_of
from evalstopd.slurmtext.tres import count_gpus

TEXTS = {
    "N/A": 0,
    "": 0,
    "(null)": 0,
    "cpu=2,mem=1000M,node=1,billing=2": 0,
    "cpu=2,mem=1000M,node=1,billing=2,gres/gpu=4": 4,
    "cpu=2,gres/gpu=4,gres/gpu:a100=4": 4,
    "cpu=2,gres/gpu:a100=4,gres/gpu:v100=2": 6,
    "gres:gpu:1": 1,
    "gres/gpu:1": 1,
    "gres:gpu": 1,
    "gres/gpu:a100:2": 2,
    "gres:gpu:a100:2": 2,
    "gres:gpu:1080:2": 2,
    "gres:gpu:a100:2,gres:gpu:v100:1": 3,
    "gres:gpu:a100:2,v100:1": 2,
    "gres:shard:8,gres:gpu:2": 2,
    "gres:shard:8": 0,
    "gres:gpu_fan:8": 0,
    "gres/gpumem=8G": 0,
    "gpu:2": 2,
    "gres:gpu:2(S:0)": 2,
    "gres/gpu=0": 0,
    "gres/gpu=1K": 1024,
}


@pytest.mark.parametrize(("text", "count"), TEXTS.items())
def test_a_text_names_its_gpus(text: str, count: int) -> None:
    assert count_gpus(text) == count


@pytest.mark.parametrize(
    ("tres", "count"),
    [
        (Tres("cpu=4,gres/gpu=4", "N/A", "gres:gpu:1", "N/A", nodes=2, tasks=8), 4),
        (Tres("cpu=4", "gres:gpu:3", "N/A", "N/A", nodes=2, tasks=8), 3),
        (Tres("cpu=4", "N/A", "gres:gpu:3", "N/A", nodes=2, tasks=8), 6),
        (Tres("cpu=4", "N/A", "N/A", "gres/gpu:a100:2", nodes=2, tasks=8), 16),
        (Tres("cpu=4", "gres:gpu:8", "gres:gpu:4", "N/A", nodes=2, tasks=1), 8),
        (Tres("cpu=4", "N/A", "N/A", "N/A", nodes=2, tasks=8), 0),
    ],
)
def test_what_is_allotted_counts_before_what_was_asked_for(tres: Tres, count: int) -> None:
    assert gpus_of(tres) == count
