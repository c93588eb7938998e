"""What MLflow's own variables and file say of the server, for what the settings leave open; no secret is ever shown.

Read here rather than by MLflow's helpers, which are private; a test compares the two.
"""

import configparser
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evalstopd.adapters.mlflow.server import VARIABLES, Server, has_login, in_address, named
from evalstopd.errors import Misconfigured

_TRUE = ("true", "1")
_FILE = Path(".mlflow") / "credentials"
_MOST_LINES = 5


@dataclass(frozen=True, slots=True)
class Found:
    """A server with all that is known of it, and where its login comes from; `file` if it comes from there.

    `besides` says which of two logins is the one that is used, where there are two.
    """

    server: Server
    login: str
    file: Path | None = None
    besides: str = ""


def completed(server: Server, environment: Mapping[str, str]) -> Found:
    """Return the server of the settings, completed from MLflow's variables, then from `~/.mlflow/credentials`.

    A login is taken whole from one place. Raises Misconfigured for half a login, and for what MLflow would do and this
    daemon does not.
    """
    _refuse(environment)
    known = _filled(server, environment)
    if not known.uri:
        raise Misconfigured("neither mlflow.tracking_uri nor MLFLOW_TRACKING_URI is set")
    login = in_address(known)
    if login[0] != login[1]:
        raise _half(
            f"the address in {named(known, 'uri')}", login, "write both, as in https://user:password@host, or neither"
        )
    if has_login(known):
        place = "the settings" if has_login(server) else "the address in MLFLOW_TRACKING_URI"
        two = bool(known.token) and (bool(known.username) or any(login))
        return Found(known, place, besides=": the token, not the user name and password" if two else "")
    return _with_login(known, environment)


def _filled(server: Server, environment: Mapping[str, str]) -> Server:
    """Return the server with MLflow's variables in the fields that are open; a login is another matter."""
    open_fields = [name for name in VARIABLES if name != "token" and not getattr(server, name)]
    given: dict[str, Any] = {name: environment.get(VARIABLES[name], "") for name in open_fields}
    return replace(server, **given, from_variables=tuple(name for name, value in given.items() if value))


def _half(where: str, login: tuple[bool, bool], remedy: str) -> Misconfigured:
    has, lacks = ("a user name", "no password") if login[0] else ("a password", "no user name")
    return Misconfigured(f"half a login: {has} and {lacks} in {where}: {remedy}")


def check(found: Found) -> str:
    """Say where the login comes from. Raises Misconfigured where others can read the file it is in."""
    if found.file is not None:
        mode = stat.S_IMODE(found.file.stat().st_mode)
        if mode & 0o077:
            raise Misconfigured(f"{found.file}: others than its owner can read it (mode {mode:04o}): chmod 600")
    return found.login if found.login == "none" else f"taken from {found.login}{found.besides}"


def _with_login(server: Server, environment: Mapping[str, str]) -> Found:
    file = Path(environment["HOME"]) / _FILE if environment.get("HOME") else None
    held = _read(file) if file is not None else {}
    name = environment.get("MLFLOW_TRACKING_USERNAME") or held.get("mlflow_tracking_username", "")
    password = environment.get("MLFLOW_TRACKING_PASSWORD") or held.get("mlflow_tracking_password", "")
    token = environment.get(VARIABLES["token"], "")
    if name and password:
        named = replace(server, username=name, password=password)
        by_file = not (environment.get("MLFLOW_TRACKING_USERNAME") and environment.get("MLFLOW_TRACKING_PASSWORD"))
        besides = f", not {VARIABLES['token']}" if token else ""
        where = str(file) if by_file else "MLFLOW_TRACKING_USERNAME and _PASSWORD"
        return Found(named, where, file if by_file else None, besides)
    if token:
        by_token = replace(server, token=token, from_variables=(*server.from_variables, "token"))
        return Found(by_token, VARIABLES["token"])
    if name or password:
        where = f"the environment and {file}" if held else "the environment"
        remedy = "set both MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or both in the file, or neither"
        raise _half(where, (bool(name), bool(password)), remedy)
    return Found(server, "none")


def _refuse(environment: Mapping[str, str]) -> None:
    if environment.get("MLFLOW_TRACKING_INSECURE_TLS", "").lower() in _TRUE:
        raise Misconfigured(
            "MLFLOW_TRACKING_INSECURE_TLS is set: certificates are always checked; name the authority in mlflow.ca_file"
        )
    for name in ("MLFLOW_TRACKING_AUTH", "MLFLOW_TRACKING_AWS_SIGV4"):
        if environment.get(name, "").lower() not in ("", "false", "0"):
            raise Misconfigured(f"{name} is set: that way to log in is not known to evalstopd")


def _read(file: Path) -> Mapping[str, str]:
    """Return what MLflow's credentials file has. Raises Misconfigured, without its contents, where it is unusable."""
    parser = configparser.ConfigParser()
    try:
        with file.open(encoding="utf-8") as lines:
            parser.read_file(lines)
        return dict(parser["mlflow"]) if "mlflow" in parser else {}
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise Misconfigured(f"{file}: {os.strerror(error.errno or 0)}") from None
    except (configparser.Error, UnicodeDecodeError) as error:
        raise Misconfigured(f"{file}: cannot be read as MLflow's credentials file: {_broken(error)}") from None


def _broken(error: configparser.Error | UnicodeDecodeError) -> str:
    """Return what is wrong with the file and where, without anything that is written in it."""
    match error:
        case configparser.MissingSectionHeaderError():
            return f"line {error.lineno} stands before any section; the file begins with a line [mlflow]"
        case configparser.ParsingError():
            lines = ", ".join(str(number) for number, _ in error.errors[:_MOST_LINES])
            return f"not of the form name = value: line {lines}{', ...' if len(error.errors) > _MOST_LINES else ''}"
        case configparser.DuplicateOptionError() | configparser.DuplicateSectionError():
            return f"line {error.lineno} says anew what a line above it has said"
        case configparser.InterpolationError():
            return "a % in a value has to be written %%"
        case _:
            return "it is no text in UTF-8"
