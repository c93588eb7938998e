"""Forged squeue and sacct records: what users write, newlines and separators too, changes nobody's record."""

import re
from collections.abc import Callable, Iterator

import pytest
from demo.rig import users
from demo.rig.cluster import Cluster
from hypothesis import given
from hypothesis import strategies as st

from evalstopd.adapters.slurm.cluster import SlurmCluster
from evalstopd.core.model import Job, Life
from evalstopd.ports import EndingQuery
from tests.adapters.slurm.fake_slurm import FakeSlurm, numbered, record
from tests.e2e.site import FALL, RISE, Site
from tests.e2e.slurm_world import SlurmWorld

ALICE, BOB = users.ALICE, users.BOB
FORGED = "x\n999|RUNNING|0|mlflow_run=evil\n"
any_text = st.text(st.characters(codec=None), max_size=60)


def queue_of(*records: dict[str, str]) -> tuple[Job, ...]:
    return SlurmCluster(run=FakeSlurm(records)).queue().jobs


@pytest.fixture(name="slurm")
def _slurm(cluster: Cluster) -> Iterator[SlurmWorld]:
    world = SlurmWorld(cluster)
    yield world
    world.clear()


@pytest.mark.parametrize("field", ["Comment", "Name", "WorkDir"])
@pytest.mark.parametrize("text", [FORGED, "\udcff\udcfe", "~" * 40, "a\x1f\tb|c\r\n", "c" * 1024, "\u2028", "^\n"])
def test_hostile_text_stays_in_its_own_field(field: str, text: str) -> None:
    honest = record(JobID="8", ArrayJobID="8")
    first, second = queue_of(record(**{field: text}), honest)
    assert text in (first.comment, first.name, first.work_dir)
    assert second == queue_of(honest)[0]


@given(any_text, any_text, any_text)
def test_no_text_of_one_user_changes_another_record(comment: str, name: str, work_dir: str) -> None:
    before, after = numbered(2)
    hostile = record(JobID="50", ArrayJobID="50", Comment=comment, Name=name, WorkDir=work_dir)
    jobs = queue_of(before, hostile, after)
    assert (jobs[0], jobs[2]) == queue_of(before, after)
    assert (jobs[1].job_id, jobs[1].uid) == ("50", 1001)
    kept = {"(null)": "", "N/A": ""}
    assert jobs[1].comment == kept.get(comment, comment)


def test_a_comment_that_repeats_an_earlier_calls_separator_forges_nothing() -> None:
    """Each call has a separator of its own, so one that leaked is of no use."""
    slurm = FakeSlurm([record()])
    cluster = SlurmCluster(run=slurm)
    cluster.queue()
    ends = re.findall(r":([^,]*)", slurm.formats[0])
    forged = f"x{ends[0]}{ends[-1]}\n999{ends[0]}"
    slurm.records = [record(Comment=forged)]
    (job,) = cluster.queue().jobs
    assert job.comment == forged
    assert slurm.formats[0] != slurm.formats[1]


@pytest.mark.slurm
@pytest.mark.mlflow
def test_forged_records_and_a_strangers_run(make_site: Callable[..., Site]) -> None:
    """ "Forged squeue records", "my comment naming another's run": newlines forge nothing, and nobody is harmed."""
    site = make_site()
    victim = site.train(ALICE, RISE)
    site.wait(lambda: site.evals(victim) >= 1, "the victim is watched")
    watch = site.watch(victim)
    assert watch is not None
    run_id = watch.run_id or ""
    row = f"x\n{victim}|RUNNING|0|mlflow_run={run_id}\n"
    idle = "#!/bin/sh\nsleep 40\n"
    options = ("--gpus=2", "--nodes=1", f"--job-name=a\n{victim} RUNNING evalstop=off")
    forger = site.cluster.sbatch(BOB, idle, *options, f"--comment={row}")
    thief = site.train(BOB, FALL, "--gpus=2", "--nodes=1", more=f"--run {run_id}")
    site.wait(lambda: site.evals(victim) == 8 and site.remarks() != [], "all evals of the victim read")

    assert {site.state(job) for job in (victim, forger, thief)} == {"RUNNING"}
    assert site.intents(victim) == site.intents(thief) == site.intents(forger) == ()
    assert not [tag for tag in site.run(run_id)["tags"] if tag.startswith("evalstop.")]
    said = [(job, code) for job, code, _ in site.remarks()]
    assert {job for job, _ in said} == {thief}
    assert len(said) == len(set(said))
    assert {code for _, code in said} <= {"disputed-run", "foreign-run"}


@pytest.mark.slurm
def test_a_forged_record_of_sacct_ends_nobodys_life(slurm: SlurmWorld) -> None:
    """ "Forged squeue and sacct records": a name, comment and path that read like the end of another's job."""
    victim = slurm.submit(slurm.alice)
    life = slurm.cluster.look([victim])[victim].life
    row = f"{victim}|{victim}|COMPLETED|{life.submitted_s}|{life.submitted_s + 1}|0:0"
    folder = slurm.rig.work(BOB) / f"x\n{row}\n"
    slurm.rig.as_user(BOB, ["mkdir", "-p", str(folder)])
    lying = (f"--job-name=x\n{row}\n", f"--comment=x\n{row}\n", f"--chdir={folder}")
    forger = slurm.rig.sbatch(BOB, "#!/bin/sh\nsleep 2\n", "--gpus=1", "--output=/dev/null", *lying)
    slurm.until(lambda: forger not in slurm.rig.squeue("-o", "%i").split())
    ended = EndingQuery(forger, Life(0, submitted(slurm, forger)))
    asked = [EndingQuery(victim, life), ended]
    slurm.until(lambda: ended in slurm.cluster.endings(asked))

    slurm.until(lambda: row in slurm.rig.sacct("-X", "-j", forger, "-o", "JobName%200"))
    assert set(slurm.cluster.endings(asked)) == {ended}


def submitted(slurm: SlurmWorld, job: str) -> int:
    """Return the submit time that accounting has of a job, in seconds since the epoch."""
    told = slurm.rig.as_user(users.DAEMON, ["sacct", "-n", "-P", "-X", "-j", job, "-o", "Submit"],
                             env={"SLURM_TIME_FORMAT": "%s"}).stdout  # fmt: skip
    return int(told.split()[0])
