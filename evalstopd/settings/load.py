"""Settings from file, credentials and variables; all that is wrong is said at once, and where it comes from."""

import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_settings import EnvSettingsSource, SettingsError

from evalstopd.errors import Misconfigured, WrongSettings
from evalstopd.settings.faults import Fault, faults_of, merged, without
from evalstopd.settings.handed import handed
from evalstopd.settings.sense import CHECKS
from evalstopd.settings.variables import (
    CONFIG_VARIABLE,
    JSON_WORDS,
    garbled_variables,
    single_keys,
    strange_variables,
    unknown_variables,
)
from evalstopd.settings.whole import PREFIX, Given, Settings

DEFAULT_PATH = Path("/etc/evalstopd/evalstopd.toml")
_MOST_LINES, _LONGEST_LINE = 50, 900


def load_settings(path: Path | None, environment: Mapping[str, str] | None = None) -> Settings:
    """Read the settings. Raises WrongSettings with a line on each that is wrong: what was given, what is needed."""
    environment = os.environ if environment is None else environment
    chosen, named = _chosen(path, environment)
    files, values = handed(environment, single_keys()), _read(chosen, named=named)
    values = merged(values, files)
    faults = [*unknown_variables(environment), *_wrong(values, environment)]
    if faults:
        source = str(chosen) if values else "settings"
        lines = [f"{_from(each, source, environment, files)}{each.text}"[:_LONGEST_LINE] for each in faults]
        more = [f"{len(lines) - _MOST_LINES} more settings are wrong"] if len(lines) > _MOST_LINES else []
        raise WrongSettings([*lines[:_MOST_LINES], *more])
    return _paced(Settings(**values))


def _wrong(values: Mapping[str, Any], environment: Mapping[str, str]) -> Iterator[Fault]:
    """Yield all that is wrong with the file's values and the variables', in the sections' order."""
    garbled = [*garbled_variables(environment)]
    given = without(values, [each.place for each in garbled])
    try:
        if not garbled:
            given = merged(values, without(EnvSettingsSource(Settings)(), strange_variables(environment)))
    except SettingsError:
        yield Fault((), f"a variable that begins with {PREFIX} cannot be read: {JSON_WORDS}")
    found = garbled
    try:
        sound = Given(**given)
    except ValidationError as error:
        found = [*garbled, *faults_of(Settings, error)]
        sound = Given(**without(given, [each.place for each in found]))
    together = [fault for check in CHECKS for fault in check(sound) if fault.stands(found)]
    sections = list(Settings.model_fields)
    yield from sorted((*found, *together), key=lambda each: (*sections, each.place[0]).index(each.place[0]))


def _from(fault: Fault, source: str, environment: Mapping[str, str], files: Mapping[str, Mapping[str, Any]]) -> str:
    """Return where a setting comes from, before what is wrong with it."""
    variables = {name.upper(): name for name, value in environment.items() if value}
    names = (f"{PREFIX}{'__'.join(map(str, fault.place[:most]))}".upper() for most in (2, 1))
    named = next((variables[name] for name in names if fault.place and name in variables), None)
    if not fault.place:
        return ""
    if named:
        return f"variable {named}: "
    by_file = len(fault.place) > 1 and fault.place[1] in files.get(str(fault.place[0]), {})
    return "credential " if by_file else f"{source}: "  # whose name is the key's, with which the text begins


def settings_source(path: Path | None, environment: Mapping[str, str] | None = None) -> str:
    """Return in words which file `load_settings` reads."""
    chosen, _ = _chosen(path, os.environ if environment is None else environment)
    return f"read from {chosen}" if chosen.exists() else f"there is no {chosen}: the defaults, and variables"


def _chosen(path: Path | None, environment: Mapping[str, str]) -> tuple[Path, bool]:
    """Return the settings file, and whether it was named: only the default one may be missing."""
    variable = environment.get(CONFIG_VARIABLE)
    return path or Path(variable or DEFAULT_PATH), path is not None or bool(variable)


def _paced(settings: Settings) -> Settings:
    """Return the settings with passes no closer together than Slurm may be asked."""
    tick_s = max(settings.daemon.tick_s, settings.slurm.min_call_interval_s)
    return settings.model_copy(update={"daemon": settings.daemon.model_copy(update={"tick_s": tick_s})})


def _read(path: Path, *, named: bool) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if named:
            raise Misconfigured(f"{path}: no such file") from None
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise Misconfigured(f"{path}: {error}") from None
