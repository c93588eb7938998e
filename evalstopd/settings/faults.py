"""Wrong settings in words: where, what was given, what is needed; never a secret, never a validator's own words."""

import difflib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, SecretStr, ValidationError
from pydantic.fields import FieldInfo

_PASSWORD = re.compile(r"(?<=://)[^/@\s]+(?=@)")
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_LONGEST_VALUE, _LONGEST_KEY = 80, 60
_KINDS = ((bool, "true or false"), (int, "a whole number"), (float, "a number"), (Path, "a path in quotes"))
_LISTS = (tuple, list)
Place = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Fault:
    """One wrong setting: its place (section, key, and what is below), and what is wrong, in one line.

    `needs` are the keys, `section.key`, that it depends on: it is one only where none of these is wrong by itself.
    """

    place: Place
    text: str
    needs: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Return the section and key."""
        return ".".join(map(str, self.place[:2]))

    def stands(self, others: Collection["Fault"]) -> bool:
        """Tell whether it does not hang on what is wrong itself: a key of `others`, or its whole section."""
        wrong = {each.key for each in others}
        return wrong.isdisjoint({*self.needs, *(key.partition(".")[0] for key in self.needs)})


def masked(value: object) -> object:
    """Return a value without the password that an address in it may have."""
    return _PASSWORD.sub("***", value) if isinstance(value, str) else value


def faults_of(model: type[BaseModel], error: ValidationError) -> Iterator[Fault]:
    """Yield every fault that the validation of a model found."""
    for each in error.errors(include_url=False):
        place = each["loc"]
        if each["type"] == "extra_forbidden":
            yield Fault(place, f"unknown key {named(place)}{_meant(model, place)}")
            continue
        takes = _takes(model, place)
        given = "" if each["type"] == "missing" or takes.secret else f", not {shown(each['input'])}"
        own = str(each["ctx"]["error"]) if each["type"] == "value_error" else f"{takes.words} is needed"
        yield Fault(place, f"{named(place)}: {own}{given}")


def known_keys(model: type[BaseModel]) -> Iterator[str]:
    """Yield every key as `section.key`, and the sections themselves."""
    for part, info in model.model_fields.items():
        yield part
        section: Any = info.annotation
        if _is_model(section):
            yield from (f"{part}.{key}" for key in section.model_fields)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return what may have been meant, as the rest of a line."""
    close = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.5)
    return f"; did you mean {close[0]}?" if close else ""


def _meant(model: type[BaseModel], place: Place) -> str:
    """Return which key may have been meant: any of all, or one of the entry's own."""
    above, _ = _at(model, place[:-1])
    own = len(place) > 2 and _is_model(above)
    return nearest(str(place[-1]), above.model_fields) if own else nearest(named(place), known_keys(model))


def named(place: Place) -> str:
    """Return a place in words: `section.key`, and which entry where the value has several."""
    words = ".".join(_key(part) for part in place[:2])
    for part in place[2:]:
        if isinstance(part, int):
            words += f", entry {part + 1}"
        else:
            words += f", {_key(part)}"
    return words


def shown(value: object) -> str:
    """Return what was given, short and in one line, whatever it is."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "a table"
    text = ascii(masked(value)) if isinstance(value, str) else ascii(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 3]}..."


def without(values: Mapping[str, Any], places: Iterable[Place]) -> dict[str, Any]:
    """Return the values but for what is wrong: its key, or the whole section where that is what is wrong."""
    gone = {place[:2] for place in places}
    kept = {part: value for part, value in values.items() if (part,) not in gone}
    return {
        part: {key: each for key, each in value.items() if (part, key) not in gone}
        if isinstance(value, dict)
        else value
        for part, value in kept.items()
    }


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of both; those above win, key by key."""
    both = {**below, **above}
    for part in below.keys() & above.keys():
        if isinstance(below[part], dict) and isinstance(above[part], dict):
            both[part] = merged(below[part], above[part])
    return both


def wants_json(model: type[BaseModel], place: Place) -> bool:
    """Tell whether the value at a place is no single one, so that a variable has to be JSON."""
    annotation, _ = _at(model, place)
    return _is_model(annotation) or get_origin(annotation) in (*_LISTS, dict)


def bad_json(text: str) -> bool:
    """Tell whether a text is no JSON."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return True
    return False


@dataclass(frozen=True, slots=True)
class _Takes:
    """What a key takes, in words; `secret`: what was given there is not shown."""

    words: str
    secret: bool


def _takes(model: type[BaseModel], place: Place) -> _Takes:
    annotation, info = _at(model, place)
    words = (info.description if info is not None else None) or _words(annotation, info.metadata if info else ())
    return _Takes(words, annotation is SecretStr)


def _at(model: Any, place: Place) -> tuple[Any, FieldInfo | None]:
    """Return the type at a place, with the field's own description where the place is a field."""
    annotation: Any = model
    info: FieldInfo | None = None
    for part in place:
        if _is_model(annotation):
            info = annotation.model_fields.get(str(part))
            annotation = info.annotation if info is not None else None
        elif get_origin(annotation) in (*_LISTS, dict):
            arguments = get_args(annotation)
            annotation, info = arguments[1 if get_origin(annotation) is dict else 0], None
        if annotation is None:
            break
    return annotation, info


def _words(annotation: Any, metadata: Sequence[object]) -> str:
    """Return what a type takes."""
    if get_origin(annotation) is Literal:
        return f"one of {', '.join(map(str, get_args(annotation)))}"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return f"one of {', '.join(str(each.value) for each in annotation)}"
    if _is_model(annotation):
        return "a section of its own"
    if get_origin(annotation) is dict:
        return 'a table, as in { "eval/loss" = "min" },'
    if get_origin(annotation) in _LISTS:
        texts = not _is_model(get_args(annotation)[0])
        return 'a list, as in ["a", "b"],' if texts else "a list of tables, each begun by its name in [[ ]],"
    kind = next((words for each, words in _KINDS if annotation is each), "a text in quotes")
    return f"{kind}{_bounds(metadata)}"


def _bounds(metadata: Sequence[object]) -> str:
    """Return a number's or a text's bounds in words."""
    ge, gt, le, low, high = (_bound(metadata, name) for name in ("ge", "gt", "le", "min_length", "max_length"))
    if high is not None:
        return f" of {low or 0} to {high} characters"
    if ge is not None and le is not None:
        return f" from {ge} to {le}"
    said = [
        f"{words} {value}"
        for words, value in (("above", gt), ("of at least", ge), ("at most", le))
        if value is not None
    ]
    return f" {' and '.join(said)}" if said else ""


def _bound(metadata: Sequence[object], name: str) -> object:
    return next((value for each in metadata if (value := getattr(each, name, None)) is not None), None)


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _key(part: str | int) -> str:
    """Return a part of a key; what is no plain word is quoted, so that nothing in it acts."""
    text = str(part)
    word = text if _PLAIN_KEY.fullmatch(text) else ascii(text)
    return word if len(word) <= _LONGEST_KEY else f"{word[: _LONGEST_KEY - 3]}..."
