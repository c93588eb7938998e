"""The variables that set a key, and those that only look like it."""

from collections.abc import Iterator, Mapping

from evalstopd.settings.faults import Fault, bad_json, known_keys, nearest, shown, wants_json
from evalstopd.settings.whole import PREFIX, Settings

CONFIG_VARIABLE = "EVALSTOPD_CONFIG"
JSON_WORDS = 'in a variable a list is written as ["a", "b"], a table as {"a": "b"}'


def unknown_variables(environment: Mapping[str, str]) -> Iterator[Fault]:
    """Yield the variables that look like ours and are not, each with the name that may be meant."""
    for name in strange_variables(environment).values():
        yield Fault((), f"unknown variable {name}{nearest(name.upper(), {*_variables(), CONFIG_VARIABLE})}")


def strange_variables(environment: Mapping[str, str]) -> dict[tuple[str, ...], str]:
    """Return the variables that look like ours and are not, by the place that they would set."""
    known = {*_variables(), CONFIG_VARIABLE}
    found = (name for name in sorted(environment) if name.upper().startswith(PREFIX) and name.upper() not in known)
    return {tuple(name[len(PREFIX) :].lower().split("__")): name for name in found}


def garbled_variables(environment: Mapping[str, str]) -> Iterator[Fault]:
    """Yield the variables of lists, tables and sections that are no JSON."""
    places = _variables()
    for name, value in sorted(environment.items()):
        place = places.get(name.upper(), ())
        if place and value and wants_json(Settings, place) and bad_json(value):
            yield Fault(place, f"{'.'.join(place)}: {JSON_WORDS}, not {shown(value)}")


def single_keys() -> set[str]:
    """Return the keys whose value is a single one, `section.key`."""
    return {key for key in known_keys(Settings) if "." in key and not wants_json(Settings, tuple(key.split(".")))}


def _variables() -> dict[str, tuple[str, ...]]:
    """Return the key that each variable sets."""
    return {f"{PREFIX}{key.replace('.', '__')}".upper(): tuple(key.split(".")) for key in known_keys(Settings)}
