"""Settings of the server: what is wrong is refused at the start, naming the setting and never the secret."""

import datetime as dt
import ipaddress
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from evalstopd.adapters.mlflow.http import Http
from evalstopd.adapters.mlflow.problems import Silent, Unreachable
from evalstopd.adapters.mlflow.server import Server
from evalstopd.errors import Misconfigured
from tests.adapters.mlflow import standin
from tests.adapters.mlflow.standin import Standin, plain
from tests.contracts.metrics_contract import is_one_line


@pytest.mark.parametrize(
    ("server", "setting"),
    [
        (Server(""), "mlflow.tracking_uri"),
        (Server("databricks"), "mlflow.tracking_uri"),
        (Server("sqlite:///s3cret.db"), "mlflow.tracking_uri"),
        (Server("/s3cret/mlruns"), "mlflow.tracking_uri"),
        (Server("http://"), "mlflow.tracking_uri"),
        (Server("http://u:s3cret@h:99999999"), "mlflow.tracking_uri"),
        (Server("http://u:s3cret@h:0"), "mlflow.tracking_uri"),
        (Server("http://u:s3cret@h\n"), "mlflow.tracking_uri"),
        (Server("http://h/?token=s3cret"), "mlflow.tracking_uri"),
        (Server("http://h/#s3cret"), "mlflow.tracking_uri"),
        (Server("http://xn--s3cret-\udcff"), "mlflow.tracking_uri"),
        (Server("http://h", token="s3cret\nX: y"), "mlflow.token"),
        (Server("http://h", token=" s3cret"), "mlflow.token"),
        (Server("http://h", workspace="s3cret\r\n"), "mlflow.workspace"),
        (Server("http://h", proxy="socks5://u:s3cret@h"), "mlflow.proxy"),
        (Server("http://h", ca_file="/nowhere/ca.pem"), "mlflow.ca_file"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_setting_that_cannot_work_is_named_and_its_value_kept_back(server: Server, setting: str):
    with pytest.raises(Misconfigured) as caught:
        Http(server)
    assert str(caught.value).startswith(f"{setting}: ")
    assert "s3cret" not in str(caught.value)
    assert is_one_line(caught.value)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for 127.0.0.1 with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "loopback")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return path


def test_a_certificate_is_checked_against_the_file_that_was_given(certificate: Path):
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    with Standin(lambda asked: plain({"safe": True}), tls) as server:
        assert Http(Server(server.uri, ca_file=str(certificate))).get("/x", {}).body == {"safe": True}
        with pytest.raises(Unreachable, match="CERTIFICATE_VERIFY_FAILED"):
            Http(Server(server.uri)).get("/x", {})
    with (
        Standin(lambda asked: standin.slow_body, tls) as server,
        pytest.raises(Silent),
    ):
        Http(Server(server.uri, ca_file=str(certificate), timeout_s=0.5)).get("/x", {})
