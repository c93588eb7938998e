"""MLflow by HTTP, and by its own database where the site gives its address: all ports of the tracker."""

import os
from dataclasses import replace
from pathlib import Path

from evalstopd.adapters.mlflow import credentials
from evalstopd.adapters.mlflow.copying import Copier
from evalstopd.adapters.mlflow.database import DatabaseRoute
from evalstopd.adapters.mlflow.gate import ServerGate
from evalstopd.adapters.mlflow.http import Http
from evalstopd.adapters.mlflow.models import RunModels
from evalstopd.adapters.mlflow.registrar import Registrar
from evalstopd.adapters.mlflow.registration import Registration
from evalstopd.adapters.mlflow.server import Server
from evalstopd.adapters.mlflow.source import MlflowSource, Ways
from evalstopd.adapters.site_key import read_site_key
from evalstopd.core.binding import Trust
from evalstopd.settings import Settings
from evalstopd.store.tracker import TrackerDatabase
from evalstopd.wiring.host import make_clock


def make_metrics(settings: Settings) -> MlflowSource:
    """Return the tracker's adapter. Raises Misconfigured without a good address."""
    return MlflowSource(Http(make_server(settings)), make_clock(), ways=_ways(settings))


def _ways(settings: Settings) -> Ways:
    """Return the ways of reading, with MLflow's own database where its address is known."""
    database = make_database(settings)
    return Ways(database=DatabaseRoute(database) if database else None)


def make_database(settings: Settings) -> TrackerDatabase | None:
    """Return MLflow's own database, if the site gives its address."""
    address = settings.mlflow.database.get_secret_value()
    return TrackerDatabase(address, settings.mlflow.time_limit_s) if address else None


def make_models(settings: Settings) -> RunModels:
    """Return what finds checkpoints among the logged models of runs."""
    return RunModels(Http(make_server(settings)))


def make_registry(settings: Settings) -> Registrar | None:
    """Return what makes model versions of kept checkpoints, if the site wants them."""
    asked = settings.promotion
    if not asked.registry:
        return None
    http = Http(replace(make_server(settings), timeout_s=asked.time_limit_s))
    copier = Copier(http, asked.copy_mb * 2**20) if asked.copy_mb else None
    return Registrar(Registration(http, asked.model, copier).register)


def make_gate(settings: Settings) -> ServerGate:
    """Return what tells whether the tracker lets strangers in."""
    server = make_server(settings)
    return ServerGate(Http(server), server)


def make_trust(settings: Settings) -> Trust:
    """Return which proofs of a binding count. Raises Misconfigured for a site key that is none."""
    binding = settings.binding
    credentials = os.environ.get("CREDENTIALS_DIRECTORY", "")
    key = read_site_key(Path(binding.mac_key), credentials) if binding.mac_key else None
    return Trust(key, tags=bool(binding.tags))


def make_server(settings: Settings) -> Server:
    """Return the tracking server with its login. Raises as `find_server` does."""
    return find_server(settings).server


def find_server(settings: Settings) -> credentials.Found:
    """Return the tracking server by the settings, MLflow's own variables and its file, in this order.

    Raises as `credentials.completed` does.
    """
    mlflow = settings.mlflow
    server = Server(
        uri=mlflow.tracking_uri,
        timeout_s=mlflow.time_limit_s,
        username=mlflow.username,
        password=mlflow.password.get_secret_value(),
        token=mlflow.token.get_secret_value(),
        workspace=mlflow.workspace,
        proxy=mlflow.proxy.get_secret_value(),
        ca_file=mlflow.ca_file,
        client_cert=mlflow.client_cert,
    )
    return credentials.completed(server, os.environ)
