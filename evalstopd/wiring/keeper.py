"""The privileged helper's client, with the times that the settings leave it."""

from evalstopd.adapters.keeper_client import KeeperClient
from evalstopd.settings import Settings

_LEAST_WAIT_S = 1.0


def make_keeper(settings: Settings) -> KeeperClient:
    """Return the client of the privileged helper; a pass waits briefly for an answer.

    For a tenth of a tick: as many slow owners as the keeper serves at a time fit into the half tick of pins.
    """
    wait_s = max(_LEAST_WAIT_S, settings.daemon.tick_s / 10)
    return KeeperClient(settings.keeper.socket, settings.keeper.time_limit_s, wait_s)
