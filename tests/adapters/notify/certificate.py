"""A certificate for loopback, made by the openssl program for one test."""

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest


def loopback(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """Return a server's context and the file that a client needs to trust it."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("TLS TESTS SKIPPED: the program openssl is not installed")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate],
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context, certificate
