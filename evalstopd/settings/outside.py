"""The sections that say where the outside is and how long it may take: Slurm, MLflow, keeper, store, Prometheus."""

from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr

from evalstopd.core.rules import ServerClass
from evalstopd.settings.part import MOST_TICK_S, Part


class SlurmSettings(Part):
    """How Slurm is spoken to. `time_limit_s` bounds each command; `conf` is the site's slurm.conf if not the usual.

    No pass asks Slurm sooner than `min_call_interval_s` seconds after the one before.
    """

    time_limit_s: float = Field(default=5.0, gt=0, le=60)
    min_call_interval_s: float = Field(default=0.0, ge=0, le=MOST_TICK_S)
    conf: str = ""
    path: str = "/usr/bin:/usr/sbin:/bin:/sbin"


class MlflowSettings(Part):
    """Where the runs are. `server` says who can write to a run: its owner only, or (`open`) anyone."""

    tracking_uri: str = ""
    server: ServerClass = ServerClass.OPEN
    time_limit_s: float = Field(default=5.0, gt=0, le=60)
    username: str = ""
    password: SecretStr = SecretStr("")
    token: SecretStr = SecretStr("")
    workspace: str = ""
    proxy: SecretStr = SecretStr("")
    ca_file: str = ""
    client_cert: str = ""
    database: SecretStr = SecretStr("")


class KeeperSettings(Part):
    """Where the privileged helper listens."""

    socket: Path = Path("/run/evalstopd/keeper.sock")
    time_limit_s: float = Field(default=90.0, gt=0)


class StoreSettings(Part):
    """Where decisions are kept: SQLite on a local disk, or PostgreSQL.

    Of the daemons on one PostgreSQL that name the same `lease` one leads; it lasts `lease_s` seconds unless renewed.
    A take-over lasts four thirds of that at most, so two passes where `lease_s` is up to 1.5 times `daemon.tick_s`.
    `keep_days` is for points and watches of jobs over for so long; 0 keeps them.
    """

    url: str = "sqlite:////var/lib/evalstopd/evalstopd.db"
    lease: str = Field(default="evalstopd", min_length=1, max_length=200)
    lease_s: float = Field(default=15.0, gt=0, le=600)
    keep_days: float = Field(default=0.0, ge=0)


class DaemonSettings(Part):
    """The loop's period in seconds, its kill switch and its log."""

    tick_s: float = Field(default=30.0, ge=0.2, le=MOST_TICK_S)
    kill_switch: Path = Path("/etc/evalstopd/STOP")
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"


class MetricsSettings(Part):
    """Where Prometheus may scrape the daemon: `port` 0 is nowhere. Who can reach `host` can read it all."""

    port: int = Field(default=0, ge=0, le=65535)
    host: str = Field(default="127.0.0.1", pattern=r"^[0-9A-Fa-f.:]+$", description="a numeric address in quotes")
