"""The daemon with a fuse round its ports, for tests: SIGKILL before or after an effect; takes EFFECT MOMENT."""

import os
import signal
import sys
import threading
from dataclasses import replace
from typing import Any

from evalstopd.daemon import Daemon
from evalstopd.log import start_log
from evalstopd.loop import Loop
from evalstopd.settings import load_settings
from evalstopd.wiring.loop import make_loop


class Fused:
    """A port that kills the process round one of its methods."""

    def __init__(self, port: object, effect: str, moment: str) -> None:
        self._port, self._effect, self._moment = port, effect, moment

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._port, name)
        return self._blow(method) if name == self._effect else method

    def _blow(self, method: Any) -> Any:
        def fused(*arguments: Any) -> None:
            if self._moment == "after":
                method(*arguments)
            os.kill(os.getpid(), signal.SIGKILL)

        return fused


def main() -> None:
    effect, moment = sys.argv[1:]
    settings = load_settings(None)
    start_log("INFO")
    stopping = threading.Event()
    loop = make_loop(settings, stopping)
    ports = loop.ports
    fused = {
        name: Fused(getattr(ports, name), effect, moment) for name in ("cluster", "runs", "keeper", "store", "notifier")
    }
    Daemon(Loop(replace(ports, **fused), loop.stance).tick, settings.daemon.tick_s, stopping).run()


main()
