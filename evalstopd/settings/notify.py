"""The section that says how people are told."""

from typing import Literal

from pydantic import Field

from evalstopd.settings.part import Part

_ADDRESS_WORDS = "one plain mail address, as in evalstopd@site.example,"
_LOCAL = r"[A-Za-z0-9_][A-Za-z0-9._+-]*"
_DOMAIN = r"[A-Za-z0-9][A-Za-z0-9.-]*"


class NotifySettings(Part):
    """How owners are told: the daemon's log, a program of the site's, mail; any of them together. Times in seconds.

    `smtp_admin` is who gets what is about no job: that a limit was lifted in writing.
    """

    kinds: tuple[Literal["log", "command", "smtp"], ...] = ("log",)
    most_waiting: int = Field(default=200, ge=1, le=100_000)
    command: tuple[str, ...] = ()
    command_time_limit_s: float = Field(default=10.0, gt=0, le=300)
    smtp_host: str = "localhost"
    smtp_port: int = Field(default=0, ge=0, le=65535)
    smtp_security: Literal["starttls", "tls", "none"] = "starttls"
    smtp_user: str = ""
    smtp_password_file: str = ""
    smtp_ca_file: str = ""
    smtp_from: str = Field(default="", pattern=rf"^$|^{_LOCAL}@{_DOMAIN}$", description=_ADDRESS_WORDS)
    smtp_to: str = Field(
        default="",
        pattern=rf"^$|^({_LOCAL}|[A-Za-z0-9._+-]*\{{user\}}[A-Za-z0-9._+-]*)@{_DOMAIN}$",
        description="one mail address, with {user} for the owner's name, as in {user}@site.example,",
    )
    smtp_admin: str = Field(default="", pattern=rf"^$|^{_LOCAL}@{_DOMAIN}$", description=_ADDRESS_WORDS)
    smtp_time_limit_s: float = Field(default=20.0, gt=0, le=300)
