"""The figures for Prometheus, where the site wants them: an extra that few need."""

from importlib import import_module

from evalstopd.errors import Misconfigured
from evalstopd.meters.port import Meters
from evalstopd.settings import Settings
from evalstopd.wiring.host import make_clock


def make_meters(settings: Settings) -> Meters | None:
    """Return the meters, served already, if the site wants them. Raises Misconfigured without the extra for them."""
    if not settings.metrics.port:
        return None
    require_prometheus()
    from evalstopd.meters.prometheus import PrometheusMeters  # noqa: PLC0415  an extra that few sites need

    meters = PrometheusMeters(make_clock().now_s)
    meters.serve(settings.metrics.host, settings.metrics.port)
    return meters


def require_prometheus() -> None:
    """Raise Misconfigured without the extra."""
    try:
        import_module("prometheus_client")
    except ModuleNotFoundError as error:
        raise Misconfigured("metrics.port: this needs prometheus-client: pip install 'evalstopd[metrics]'") from error
