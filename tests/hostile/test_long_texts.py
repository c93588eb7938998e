"""250-character keys, and 1,024 bytes of invalid UTF-8: as long and as broken as Slurm and MLflow take them."""

from collections.abc import Callable, Iterator

import pytest
from demo.rig import users
from demo.rig.cluster import Cluster

from evalstopd.core.intent import State
from tests.e2e.site import FALL, Site
from tests.e2e.slurm_world import SlurmWorld
from tests.hostile.texts import acting, cells, is_formula, strict_json

LONGEST_KEY = "eval/" + "k" * 245
BROKEN = b"\xff\xfe\x80\xc3" * 256
COMMANDS = ("status", "explain JOB", "report", "report --format csv", "report --format json", "audit replay")


@pytest.fixture(name="slurm")
def _slurm(cluster: Cluster) -> Iterator[SlurmWorld]:
    world = SlurmWorld(cluster)
    yield world
    world.clear()


@pytest.mark.slurm
@pytest.mark.parametrize("text", [b"\xff\xfe", b"\x1b]0;t\x07", b"c" * 1000, b"a|b\tc\x1fd\r", "ü\u2028".encode()])
def test_any_bytes_in_name_and_comment_stay_where_they_are(slurm: SlurmWorld, text: bytes) -> None:
    said = text.decode(errors="surrogateescape")
    hostile = slurm.submit_only(slurm.alice, "--hold", f"--comment={said}", f"--job-name=\n{said[:200]}")
    honest = slurm.submit_only(slurm.bob, "--hold", "--comment=mlflow_run=b", "--job-name=b")
    jobs = {job.job_id: job for job in slurm.cluster.queue().jobs}
    assert jobs.keys() == {hostile, honest}
    assert (jobs[hostile].comment, jobs[hostile].name) == (said, f"\n{said[:200]}")
    assert (jobs[honest].comment, jobs[honest].name, jobs[honest].uid) == ("mlflow_run=b", "b", slurm.bob)


@pytest.mark.slurm
def test_a_comment_of_1024_bytes_that_are_no_utf_8_is_its_own_jobs_trouble(slurm: SlurmWorld) -> None:
    """ "1,024 bytes of invalid UTF-8": Slurm takes them; no other record changes, and every program goes on."""
    said = BROKEN.decode(errors="surrogateescape")
    broken = slurm.submit_only(slurm.alice, "--hold", f"--comment={said}", f"--job-name={said[:200]}")
    honest = slurm.submit_only(slurm.bob, "--hold", "--comment=mlflow_run=b", "--job-name=b")
    jobs = {job.job_id: job for job in slurm.cluster.queue().jobs}

    assert jobs.keys() == {broken, honest}
    assert len(jobs[broken].comment) >= 1000
    assert said.startswith(jobs[broken].comment)
    assert jobs[broken].uid == slurm.alice
    assert (jobs[honest].comment, jobs[honest].name, jobs[honest].uid) == ("mlflow_run=b", "b", slurm.bob)


@pytest.mark.slurm
@pytest.mark.mlflow
def test_the_longest_key_judges_a_job_whose_every_text_is_hostile(make_site: Callable[..., Site]) -> None:
    """ "250-character keys", and on real parts what the listings do with a name, a comment and a path that act."""
    site = make_site(rules={"metric": LONGEST_KEY})
    # The keeper refuses folders with control characters: nothing in such a one could be stopped.
    folder = site.cluster.work(users.ALICE) / "=cmd| [red]x[/red] <script>'$(id)"
    site.cluster.as_user(users.ALICE, ["mkdir", "-p", str(folder)])
    name = "n\n\x1b[31m[red]=cmd|' /C calc'!A0\r<script>"
    command = site.command(FALL, words="=cmd| <script>")
    lying = (f"--job-name={name}", f"--chdir={folder}", "--output=/dev/null")
    script = f"#!/bin/sh\nexec {command} --metric {LONGEST_KEY}\n"
    job = site.cluster.sbatch(users.ALICE, script, "--gpus=4", "--nodes=1", *lying)
    site.wait(lambda: site.intents(job) and site.intents(job)[0].state is State.CONFIRMED, "the stop")
    (intent,) = site.intents(job)
    watch = site.watch(job)

    assert watch is not None
    assert (watch.name, intent.evidence.metric, site.accounted(job)) == (name, LONGEST_KEY, "CANCELLED")
    assert intent.kept_path.startswith(str(folder))
    assert site.run(intent.evidence.run_id)["tags"]["evalstop.checkpoint"] == intent.kept_path
    for command in COMMANDS:
        done = site.service.command(*command.replace("JOB", job).split())
        assert done.returncode == 0, done.stderr
        assert acting(done.stdout + done.stderr) == set(), command
        assert not command.endswith("json") or strict_json(done.stdout)
        assert not command.endswith("csv") or not any(map(is_formula, cells(done.stdout)))
    log = site.service.log.read_bytes().decode()
    assert "[red]" in log
    assert acting(log) == set()
