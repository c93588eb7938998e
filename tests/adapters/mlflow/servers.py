"""Real MLflow servers of other kinds than the usual one, and the logged models that users make on them."""

import json
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from demo.rig.mlflow_server import MlflowServer

from tests.warm_mlflow import Warm

PASSWORD = "a-long-password-of-tests"
_PROXIED = "mlflow-artifacts:/"


class Proxied(MlflowServer):
    """The same server, keeping the runs' artifacts itself, as most sites have it."""

    def _command(self) -> list[str]:
        command = super()._command()
        at = command.index("--default-artifact-root")
        command[at : at + 2] = ["--serve-artifacts", "--artifacts-destination", str(self.database.parent / "kept")]
        return command


class WarmProxied(Warm, Proxied):
    """The same, begun as a fork."""


def upload(uri: str, location: str, files: Mapping[str, int]) -> None:
    """Add files of these sizes to a model's artifacts, as MLflow's client does: through the server, or to the disk."""
    for name, size in files.items():
        if location.startswith(_PROXIED):
            path = quote(f"{location.removeprefix(_PROXIED)}/{name}")
            address = f"{uri}/api/2.0/mlflow-artifacts/artifacts/{path}"
            urllib.request.urlopen(urllib.request.Request(address, b"x" * size, method="PUT"), timeout=60).close()
        else:
            file = Path(location.removeprefix("file://")) / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(b"x" * size)


def call(uri: str, method: str, path: str, body: Mapping[str, object]) -> dict[str, object]:
    """Ask MLflow's REST API and return its answer."""
    data, headers = json.dumps(body).encode(), {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{uri}/api/2.0/mlflow{path}", data, headers, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        found: dict[str, object] = json.load(answer)
        return found
