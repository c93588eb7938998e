"""What `evalstopd check` asks, one question a port, answered in plain words; nothing is changed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evalstopd.errors import EvalstopError


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The answer to one question; `exit_code` is that of a command which this would end."""

    what: str
    good: bool
    text: str
    exit_code: int = 0


Probe = Callable[[], CheckResult]


def worst(results: Sequence[CheckResult]) -> int:
    """Return the exit code of all: a wrong setting's before that of a store of another version, before all others."""
    return max((each.exit_code for each in results), default=0)


def probe(what: str, ask: Callable[[], str]) -> Probe:
    """Return a question whose answer is text, and whose trouble is a bad result with the reason."""

    def asked() -> CheckResult:
        try:
            return CheckResult(what, good=True, text=ask())
        except EvalstopError as error:
            return CheckResult(what, good=False, text=str(error), exit_code=getattr(error, "exit_code", 1))

    return asked
