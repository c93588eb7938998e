"""A port with some methods replaced: how a test puts an event between two calls."""

from typing import Any


class Overlaid:
    """Any port; the methods given stand before its own."""

    def __init__(self, port: object, **methods: object) -> None:
        self._port, self._methods = port, methods

    def __getattr__(self, name: str) -> Any:
        return self._methods.get(name) or getattr(self._port, name)
