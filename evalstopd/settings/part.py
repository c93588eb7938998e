"""What the sections of the settings have in common: frozen, nothing unknown, and words that several of them use."""

from typing import Annotated

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainSerializer,
    StringConstraints,
    ValidationInfo,
    field_validator,
)

from evalstopd.core.model import Mode, Rung

MOST_TICK_S = 300
"""A third of the unit's WatchdogSec, which a good pass feeds: a daemon that comes by more seldom would be ended."""


def _rung(value: object) -> Rung:
    words = {rung.word: rung for rung in Rung}
    if isinstance(value, Rung):
        return value
    if not isinstance(value, str) or value not in words:
        raise ValueError(f"one of {', '.join(words)} is needed")
    return words[value]


RungWord = Annotated[Rung, BeforeValidator(_rung), PlainSerializer(lambda rung: rung.word, return_type=str)]
ModeWord = Annotated[
    Mode | None,
    BeforeValidator(lambda value: None if value == "" else value),
    PlainSerializer(lambda mode: mode or "", return_type=str),
]
AnyCase = Annotated[str, StringConstraints(to_lower=True)]
# Blanks are no reason.
Reason = Annotated[str, StringConstraints(strip_whitespace=True)]


class Part(BaseModel):
    """A section: frozen, and an unknown key is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth(cls, value: object, info: ValidationInfo) -> object:
        """Refuse true and false for a number: pydantic takes them for 1 and 0."""
        if isinstance(value, bool) and cls.model_fields[str(info.field_name)].annotation in (int, float):
            raise ValueError("a number is needed")
        return value
