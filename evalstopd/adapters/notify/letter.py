"""A message as a mail: whatever users wrote is text in it, never a header, an address or an escape."""

import re
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import make_msgid

from evalstopd.adapters.notify.text import harmless
from evalstopd.errors import Rejected
from evalstopd.ports import Message

PLACE = "{user}"
_LOCAL_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,63}")
_ADDRESS = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,63}@[A-Za-z0-9]([A-Za-z0-9.-]{0,250}[A-Za-z0-9])?")
_SUBJECT = 150
# A subject without a blank, as escaped text may be, would be folded right after its name, and begin with a blank.
_UNFOLDED = SMTP.clone(max_line_length=998)
_BODY = 4000


def is_address(text: str) -> bool:
    """Tell whether a text is one plain mail address: no name, no comment, no quotes, no list."""
    return _ADDRESS.fullmatch(text) is not None


def address_of(user: str, template: str) -> str:
    """Return a user's address. Raises Rejected for a name that makes none: it may hold anything."""
    address = template.replace(PLACE, user)
    if _LOCAL_PART.fullmatch(user) is None or not is_address(address):
        raise Rejected(f"the user name {harmless(user, 40)!a} makes no mail address")
    return address


def letter(message: Message, sender: str, template: str, admin: str = "") -> EmailMessage:
    """Return the mail. Raises Rejected where there is no address to send it to."""
    if message.for_admin and not admin:
        raise Rejected("notify.smtp_admin names no address of the site's admin")
    mail = EmailMessage(policy=SMTP)
    mail["From"] = sender
    mail["To"] = admin if message.for_admin else address_of(message.user, template)
    mail["Subject"] = harmless(f"[evalstopd] {message.about}: {message.subject}", _SUBJECT)
    mail["Date"] = datetime.now(UTC)
    mail["Message-ID"] = make_msgid(domain=sender.rpartition("@")[2])
    # So that no vacation notice answers a daemon.
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(harmless(message.text, _BODY) + "\n", cte="quoted-printable")
    mail.policy = _UNFOLDED
    return mail
