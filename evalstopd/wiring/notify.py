"""The ways by which people are told: those of the site's choice, from a thread of their own."""

from evalstopd.adapters.notify.channel import Channel
from evalstopd.adapters.notify.command import CommandChannel
from evalstopd.adapters.notify.log import LogNotifier
from evalstopd.adapters.notify.mail import MailChannel, MailServer, Security
from evalstopd.adapters.notify.outbox import Outbox
from evalstopd.adapters.notify.several import AlsoLogged, Several
from evalstopd.ports import Notifier
from evalstopd.settings import Settings


def make_notifier(settings: Settings) -> Notifier:
    """Return what tells owners, by the kinds that the site chose."""
    channels = make_channels(settings)
    if not channels:
        return LogNotifier()
    outbox = Outbox(Several(channels), settings.notify.most_waiting)
    return AlsoLogged(LogNotifier(), outbox) if "log" in settings.notify.kinds else outbox


def make_channels(settings: Settings) -> tuple[Channel, ...]:
    """Return the chosen ways that may be slow or broken: all but the log."""
    asked = settings.notify
    server = MailServer(
        host=asked.smtp_host,
        port=asked.smtp_port,
        security=Security(asked.smtp_security),
        user=asked.smtp_user,
        password_file=asked.smtp_password_file,
        ca_file=asked.smtp_ca_file,
        limit_s=asked.smtp_time_limit_s,
    )
    known: dict[str, Channel] = {
        "command": CommandChannel(asked.command, asked.command_time_limit_s),
        "smtp": MailChannel(server, asked.smtp_from, asked.smtp_to, asked.smtp_admin),
    }
    return tuple(known[kind] for kind in dict.fromkeys(asked.kinds) if kind in known)
