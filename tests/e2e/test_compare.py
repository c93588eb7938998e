"""One small workload of the simulator on the real cluster, the daemon off and on."""

import shutil
from pathlib import Path

import pytest
from demo.compare.__main__ import Asked, repeat, tell
from demo.compare.arm import Stage
from demo.compare.plan import Plan
from demo.rig.cluster import Cluster
from demo.rig.mlflow_server import MlflowServer

pytestmark = [pytest.mark.slurm, pytest.mark.mlflow, pytest.mark.slow]
EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_daemon_stops_what_the_simulator_says_and_both_are_told(
    cluster: Cluster,
    mlflow_server: MlflowServer,
    reachable_directory: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nobody is stopped without the daemon; with it hacking jobs are, and the waste is less than it was."""
    pytest.importorskip("matplotlib")
    plan = Plan(jobs=8, nodes=2, gpus_per_node=4, hour_s=1.5, load=2.0)
    asked = Asked(plan, 1, 0, reachable_directory / "compare", as_json=False)
    asked.directory.mkdir()
    trainer = Path(shutil.copy(EXAMPLES / "demo" / "compare" / "trainer.py", asked.directory))
    said: list[str] = []

    found = repeat(Stage(cluster, mlflow_server.uri, trainer), asked, asked.first_seed, said.append)
    tell(asked, [found], 1.0)

    off, on = (found.runs[arm] for arm in ("real off", "real on"))
    assert off.scores.jobs == on.scores.jobs == plan.jobs
    assert off.scores.unfinished == on.scores.unfinished == off.scores.stopped == 0
    # Accounting has whole seconds: a job's end may be told one early.
    assert off.scores.w1_gpu_h > 0.8 * found.runs["simulated off"].scores.w1_gpu_h
    assert 1 <= on.scores.stopped <= found.runs["simulated on"].scores.stopped, said
    assert on.delay_s is not None
    assert on.delay_s > -1
    assert any("confirmed" in line for line in said)
    assert cluster.squeue() == ""
    assert "mean JCT (h)" in capsys.readouterr().out
    assert (asked.directory / "compare.png").stat().st_size > 1000
