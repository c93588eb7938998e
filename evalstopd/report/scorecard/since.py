"""From when on: a day, or so many days back."""

import re
from datetime import UTC, datetime

from evalstopd.errors import WrongUsage

_DAYS = re.compile(r"([0-9]{1,5})d", re.ASCII)
_DAY_S = 86400.0


def since_s(text: str, now_s: float, option: str = "--since") -> float:
    """Return the moment that `30d` or `2026-01-31` (UTC) names, in seconds since the epoch; 0 for no text.

    Raises WrongUsage, naming the option, for any other text.
    """
    if not text:
        return 0.0
    days = _DAYS.fullmatch(text)
    if days:
        return now_s - int(days[1]) * _DAY_S
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise WrongUsage(f"{option} {text!a}: a day such as 2026-01-31, or days such as 30d, is needed") from None
