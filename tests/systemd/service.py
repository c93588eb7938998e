"""The service as the README installs it: its steps run in a booted systemd, beside a real cluster and tracker."""

import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from demo.rig import users
from demo.rig.cluster import Cluster
from demo.rig.mlflow_server import MlflowServer
from demo.rig.ports import free_block

from tests.e2e.site import METRIC, TRAINER
from tests.systemd.box import Box, booted

TREE = Path(__file__).parents[2]
ACCOUNT = "ml"
_STEPS = (TREE / "README.md").read_text().partition("## Installation on a cluster")[2].partition("\n**")[0]
STEPS = tuple(re.findall(r"^ +```\n(.*?)^ +```$", _STEPS, re.MULTILINE | re.DOTALL))
# The environment and the tree where units that see neither home nor temporary folders find them.
VENV, SEEN_TREE = "/opt/evalstopd", "/opt/evalstopd-tree"
PROGRAM = f"""#!{VENV}/bin/python3 -P
import sys
sys.path[:0] = ["{SEEN_TREE}", "{SEEN_TREE}/sim", "{SEEN_TREE}/migrations"]
from evalstopd.cli import main
sys.exit(main())
"""
SETTINGS = """
[slurm]
conf = "{conf}"
[mlflow]
tracking_uri = "{uri}"
[rules]
rung = "enforce"
rule = "k-declines:k=2"
metric = "{metric}"
mode = "max"
[enforce]
override = "a test"
notice_s = 0
[trust]
open_mlflow = "a test"
[notify]
kinds = ["log", "command"]
command = ["/bin/true"]
[caps]
gpu_share = 1.0
[daemon]
tick_s = 1.0
[metrics]
port = {port}
"""


@dataclass(frozen=True)
class Installed:
    """A site whose daemon and keeper are units of a systemd that runs."""

    box: Box
    cluster: Cluster
    mlflow: MlflowServer
    folder: Path
    metrics_port: int

    def train(self, scores: str) -> str:
        """Submit a job of alice's that logs these scores; return its id."""
        command = f"/usr/bin/python3 {self.folder}/trainer.py {self.mlflow.uri} {scores} 2 --linger-s 600"
        return self.cluster.sbatch(users.ALICE, f"#!/bin/sh\nexec {command}\n", "--gpus=1", "--nodes=1")

    def told(self, job: str) -> str:
        """Return what the journal has of a job."""
        return self.box.log("--unit=evalstopd", f"EVALSTOPD_JOB={job}")

    def passes(self) -> int:
        """Return how many passes the journal tells of."""
        return len(self.box.log("--unit=evalstopd", "EVALSTOPD_EVENT=pass", lines=100_000).splitlines())

    def show(self, *properties: str, unit: str = "evalstopd") -> list[str]:
        """Return what systemd says of these properties of a unit."""
        return [self.box.done(f"systemctl show --value --property={each} {unit}").strip() for each in properties]


@contextmanager
def installed() -> Iterator[Installed]:
    """Start the parts, boot, and follow the README. Raises NoBoxError where systemd cannot be booted."""
    # Not below a temporary folder: units have temporary folders of their own.
    folder = Path(tempfile.mkdtemp(prefix="evsunits-", dir="/srv"))
    try:
        folder.chmod(0o755)
        shutil.copy(TRAINER, folder / "trainer.py")
        shared = {folder: str(folder), Path(sys.prefix): VENV, TREE: SEEN_TREE}
        with (
            Cluster(folder / "slurm", nodes=1, gpus=4) as cluster,
            MlflowServer(sys.executable, folder / "mlflow") as mlflow,
            booted(shared) as box,
        ):
            cluster.add_account(ACCOUNT)
            cluster.add_user(users.ALICE, ACCOUNT)
            # One account under two names: slurmctld's, and the one that it has in the box.
            for name in (users.DAEMON, "evalstopd"):
                cluster.add_user(name, ACCOUNT, admin_level="Operator")
            site = Installed(box, cluster, mlflow, folder, free_block(1))
            _install(site)
            yield site
    finally:
        shutil.rmtree(folder)


def _install(site: Installed) -> None:
    box, program = site.box, site.folder / "evalstopd"
    # The cluster's daemons know the rig's account alone, so in the box it has the name that a site gives it.
    daemon = users.DAEMON
    box.done(f"usermod -l evalstopd -d /var/lib/evalstopd {daemon} && groupmod -n evalstopd {daemon}")
    program.write_text(PROGRAM)
    box.done(f"install -m 755 {program} /usr/bin/evalstopd")
    account, service = STEPS
    box.done(f"cd {SEEN_TREE}\n{account}")
    box.done(
        f"cd {SEEN_TREE}; install -D -m 644 -t /usr/lib/evalstopd evalstopd/keeper/{{keeper,as_owner}}.py;"
        "install -m 644 -t /etc/systemd/system systemd/*.service systemd/*.socket; systemctl daemon-reload"
    )
    settings = site.folder / "evalstopd.toml"
    conf, uri, port = site.cluster.env["SLURM_CONF"], site.mlflow.uri, site.metrics_port
    settings.write_text(SETTINGS.format(conf=conf, uri=uri, metric=METRIC, port=port))
    box.done(f"install -m 644 {settings} /etc/evalstopd/evalstopd.toml")
    box.done(service)
