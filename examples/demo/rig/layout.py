"""Where everything of a cluster lies below its directory, and the texts of its configuration."""

import secrets
import shutil
import socket
from dataclasses import dataclass
from pathlib import Path

from evalstopd.keeper import job_secret

SLURM_SCRIPTS = Path(__file__).parents[3] / "systemd" / "slurm"

# Partitions as sites have them; GPU jobs run in `gpu` unless they say otherwise.
SLURM_CONF = """\
ClusterName={name}
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={munge_socket}
CredType=cred/munge
StateSaveLocation={state}
SlurmctldPidFile={run}/slurmctld.pid
SlurmctldLogFile={log}/slurmctld.log
SlurmdPidFile={run}/%n.pid
SlurmdLogFile={log}/%n.log
SlurmdSpoolDir={spool}/%n
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=0
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
SlurmdTimeout={node_timeout_s}
SlurmctldTimeout=30
KillWait={kill_wait_s}
MinJobAge=60
MaxArraySize=10001
SchedulerType=sched/{scheduler}
SchedulerParameters=defer_batch,bf_interval=5,sched_interval=5,batch_sched_delay=0,sched_min_interval=100000
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityWeightPartition=1000
PriorityWeightQOS=10000
JobRequeue=1
GresTypes=gpu
{more}
{accounting}
{nodes}
PartitionName=gpu Nodes=n[0-{last}] Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
"""
# AccountingStoragePass is no password here: with auth/munge it is the munge socket used towards slurmdbd.
WITH_DATABASE = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={database_port}
AccountingStoragePass={munge_socket}
AccountingStorageEnforce=qos
AccountingStorageTRES=gres/gpu
AccountingStoreFlags=job_comment"""
WITH_HOOKS = """\
Prolog={hooks}/prolog
Epilog={hooks}/epilog
TaskProlog={hooks}/taskprolog
PrologFlags=Alloc"""
# For thousands of tasks on a few cores: nobody takes a node that is busy for one that is lost.
PATIENT = """\
MessageTimeout=100
BatchStartTimeout=900"""
WITHOUT_DATABASE = "AccountingStorageType=accounting_storage/none"
NODE = (
    "NodeName=n{number} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={cpus} Boards=1 "
    "SocketsPerBoard=1 CoresPerSocket={cpus} ThreadsPerCore=1 RealMemory=1000 Gres=gpu:{gpus} State=UNKNOWN"
)
# The scripts of the project with this cluster's own key and folder: Slurm runs them without arguments.
HOOK = """\
#!/bin/sh
exec {script} {arguments}
"""
SLURMDBD_CONF = """\
AuthType=auth/munge
AuthInfo=socket={munge_socket}
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={database_port}
SlurmUser=root
LogFile={log}/slurmdbd.log
PidFile={run}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=evsrig
"""


@dataclass(frozen=True, slots=True)
class Size:
    """How large the cluster is, how long slurmd waits between TERM and KILL, and which scheduler it has.

    A crowded one has thousands of tasks: it runs no hooks for each, and waits long for a busy node.
    """

    name: str
    nodes: int
    gpus: int
    cpus: int
    kill_wait_s: int
    database: bool
    scheduler: str
    crowded: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """The folders of one cluster and its ports: controller, slurmdbd, then one a node."""

    root: Path
    port: int

    @property
    def conf(self) -> Path:
        return self.root / "etc" / "slurm.conf"

    @property
    def run(self) -> Path:
        return self.root / "run"

    @property
    def log(self) -> Path:
        return self.root / "log"

    @property
    def database(self) -> Path:
        return self.root / "db"

    @property
    def database_scratch(self) -> Path:
        return self.root / "db-tmp"

    @property
    def site_key(self) -> Path:
        return self.root / "etc" / "mac-key"

    @property
    def munge(self) -> Path:
        return self.root / "munge"

    def work(self, user: str) -> Path:
        return self.root / "work" / user

    def make(self) -> None:
        """Create the folders; other users may pass through, and see neither state nor keys."""
        for folder in ("", "etc", "etc/hooks", "run", "log", "munge", "dev", "spool", "work"):
            (self.root / folder).mkdir(parents=True, exist_ok=True)
            (self.root / folder).chmod(0o755)
        for private in (self.database, self.database_scratch, self.run / "state"):
            private.mkdir(exist_ok=True)
            private.chmod(0o700)

    def write(self, size: Size, version: tuple[int, int]) -> None:
        """Write the configuration for the Slurm version that is installed."""
        etc = self.conf.parent
        self.conf.write_text(self._slurm_conf(size))
        (etc / "gres.conf").write_text(
            f"NodeName=n[0-{size.nodes - 1}] Name=gpu File={self.root}/dev/gpu[0-{size.gpus - 1}]\n"
        )
        # From 23.11 on slurmd takes over a cgroup unless told otherwise; before, the word is unknown.
        (etc / "cgroup.conf").write_text("CgroupPlugin=disabled\n" if version >= (23, 11) else "")
        dbd = etc / "slurmdbd.conf"
        dbd.touch(mode=0o600)
        dbd.write_text(SLURMDBD_CONF.format(**self._places()))
        self._make_gpus(size.gpus)
        self._make_hooks()

    def _make_hooks(self) -> None:
        """Install the hooks that give each job its secret, as a site does."""
        if not self.site_key.exists():
            self.site_key.touch(mode=0o400)
            self.site_key.write_text(secrets.token_hex(32))
        installed = self.root / "etc" / "hooks" / "lib"
        installed.mkdir(exist_ok=True)
        for file in (*SLURM_SCRIPTS.glob("*.sh"), Path(job_secret.__file__)):
            shutil.copy(file, installed)
        jobs = self.root / "run" / "jobs"
        for name, arguments in (("prolog", f"{self.site_key} {jobs}"), ("epilog", jobs), ("taskprolog", jobs)):
            hook = installed.parent / name
            hook.write_text(HOOK.format(script=installed / f"{name}.sh", arguments=arguments))
            hook.chmod(0o755)

    def _make_gpus(self, count: int) -> None:
        # slurmd counts a GPU only where there is a character device.
        for number in range(count):
            device = self.root / "dev" / f"gpu{number}"
            device.unlink(missing_ok=True)
            device.symlink_to("/dev/null")

    def _places(self) -> dict[str, object]:
        return {
            "munge_socket": self.munge / "socket",
            "state": self.run / "state",
            "run": self.run,
            "log": self.log,
            "spool": self.root / "spool",
            "hooks": self.root / "etc" / "hooks",
            "controller_port": self.port,
            "database_port": self.port + 1,
        }

    def _slurm_conf(self, size: Size) -> str:
        host = socket.gethostname().partition(".")[0]
        nodes = [
            NODE.format(number=n, host=host, port=self.port + 2 + n, cpus=size.cpus, gpus=size.gpus)
            for n in range(size.nodes)
        ]
        accounting = WITH_DATABASE if size.database else WITHOUT_DATABASE
        places = self._places()
        return SLURM_CONF.format(
            **places,
            name=size.name,
            host=host,
            kill_wait_s=size.kill_wait_s,
            scheduler=size.scheduler,
            accounting=accounting.format(**places),
            more=(PATIENT if size.crowded else WITH_HOOKS).format(**places),
            node_timeout_s=0 if size.crowded else 60,
            nodes="\n".join(nodes),
            last=size.nodes - 1,
        )
