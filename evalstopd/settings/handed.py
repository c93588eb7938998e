"""Settings that systemd hands over as files (LoadCredential), named as the settings are: passwords in no variable."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from evalstopd.errors import Misconfigured

FOLDER_VARIABLE = "CREDENTIALS_DIRECTORY"
_MOST_BYTES = 65_536


def handed(environment: Mapping[str, str], known: Collection[str]) -> dict[str, dict[str, Any]]:
    """Return what the files of the credentials' folder set, by section and key; `known` are the keys they may set.

    A file of another name is another program's business, or read by a setting that names it; an empty one sets nothing.
    Raises Misconfigured, without what is in it, for a file that cannot be read as text.
    """
    folder = environment.get(FOLDER_VARIABLE, "")
    found: dict[str, dict[str, Any]] = {}
    for name in sorted(_names(Path(folder)) & set(known)) if folder else ():
        section, _, key = name.partition(".")
        if text := _text(Path(folder) / name):
            found.setdefault(section, {})[key] = text
    return found


def _names(folder: Path) -> set[str]:
    try:
        return {each.name for each in folder.iterdir()}
    except (FileNotFoundError, NotADirectoryError):
        return set()
    except OSError as error:
        raise Misconfigured(f"{FOLDER_VARIABLE}: {str(folder)!a}: {error.strerror}") from None


def _text(file: Path) -> str:
    """Return a file's text without the ends of lines after it, which editors add."""
    try:
        with file.open("rb") as source:
            content = source.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise Misconfigured(f"credential {file.name}: longer than {_MOST_BYTES} bytes")
        return content.decode().rstrip("\r\n")
    except OSError as error:
        raise Misconfigured(f"credential {file.name}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Misconfigured(f"credential {file.name}: it is no text in UTF-8") from None
