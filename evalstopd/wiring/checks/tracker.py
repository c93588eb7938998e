"""What `evalstopd check` asks of MLflow, and of what proves that a run is a job's."""

from evalstopd.adapters.mlflow import credentials
from evalstopd.core.rules import ServerClass
from evalstopd.errors import Unavailable
from evalstopd.settings import Settings
from evalstopd.skew import agreeing
from evalstopd.wiring.host import make_clock
from evalstopd.wiring.tracker import find_server, make_database, make_gate, make_metrics, make_server, make_trust


def api(settings: Settings) -> str:
    """Tell whether the server answers, and in which workspace."""
    workspace, said = make_server(settings).workspace, make_metrics(settings).ping()
    return f"{said}; in the workspace {workspace[:60]!a}" if workspace else said


def login(settings: Settings) -> str:
    """Tell by whose word the daemon logs in."""
    return credentials.check(find_server(settings))


def door(settings: Settings) -> str:
    """Tell who gets in. Raises Unavailable where a server that is declared authenticated lets strangers in."""
    declared = settings.mlflow.server
    if not make_gate(settings).admits_strangers():
        return f"it refuses who does not log in; declared {declared}"
    if declared is ServerClass.AUTHENTICATED:
        raise Unavailable("declared authenticated, but it answers without a login: it is taken for open")
    return "open: it answers without a login, so that anyone could have written a run's points"


def database(settings: Settings) -> str:
    """Tell whether MLflow's own database can be read."""
    own = make_database(settings)
    return own.look() if own else "not set: evals are read from the server"


def proofs(settings: Settings) -> str:
    """Tell by what a run is proven to be a job's."""
    trust = make_trust(settings)
    ways = ["the job's comment", *(["seals"] if trust.key else []), *(["tags"] if trust.tags else [])]
    return f"a run is proven to be a job's by: {', '.join(ways)}"


def clock(settings: Settings) -> str:
    """Tell whether the server's clock agrees with ours."""
    return agreeing("MLflow", make_metrics(settings).clock_s, make_clock().now_s)
