"""What `evalstopd check` asks of the site's own choices: what they come to, and what they lack."""

import os

from evalstopd.adapters.notify.several import Several
from evalstopd.core.model import Rung
from evalstopd.errors import Unavailable
from evalstopd.settings import Settings
from evalstopd.wiring.host import account_name, make_kill_switch
from evalstopd.wiring.notify import make_channels


def switch(settings: Settings) -> str:
    """Tell that the kill switch is not set. Raises Unavailable where it is, or could not be set."""
    path = settings.daemon.kill_switch
    if make_kill_switch(settings).engaged():
        raise Unavailable(f"the kill switch is set ({path}): nothing is acted on")
    if not path.parent.is_dir():
        raise Unavailable(f"it cannot be set: the folder {str(path.parent)!a} does not exist (daemon.kill_switch)")
    return "not set"


def telling(settings: Settings) -> str:
    """Tell by what owners are told. Raises Unavailable where it is broken, or no owner is told although he should."""
    channels = make_channels(settings)
    if channels:
        return f"{Several(channels).check()}{_to_one(settings)}"
    if settings.rules.rung < Rung.WARN:
        return "messages go to the daemon's log"
    raise Unavailable(
        f"owners are told nothing: on the {settings.rules.rung.word} rung messages go to the daemon's log alone, which "
        'they cannot read; add "smtp" or "command" to notify.kinds'
    )


def _to_one(settings: Settings) -> str:
    """Say where mail to whichever owner goes to one address, which may be a list's or a slip."""
    asked = settings.notify
    if "smtp" not in asked.kinds or "{user}" in asked.smtp_to:
        return ""
    return f"; mail to every owner goes to {asked.smtp_to}: notify.smtp_to has no {{user}} in it"


def promotion(settings: Settings) -> str:
    """Tell what becomes of kept checkpoints."""
    asked = settings.promotion
    if not asked.registry:
        return "no model versions are made"
    account = account_name(os.getuid()) or f"uid {os.getuid()}"
    copied = f"; only those of jobs of {account} can be copied in (promotion.copy_mb)" if asked.copy_mb else ""
    return f"kept checkpoints become versions of {asked.model}{copied}"
