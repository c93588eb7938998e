"""What `evalstopd check` asks, one question a port, answered in plain words; nothing is changed."""

from collections.abc import Callable
from dataclasses import dataclass

from evalstopd.errors import EvalstopError


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The answer to one question."""

    what: str
    good: bool
    text: str


Probe = Callable[[], CheckResult]


def probe(what: str, ask: Callable[[], str]) -> Probe:
    """Return a question whose answer is text, and whose trouble is a bad result with the reason."""

    def asked() -> CheckResult:
        try:
            return CheckResult(what, good=True, text=ask())
        except EvalstopError as error:
            return CheckResult(what, good=False, text=str(error))

    return asked
