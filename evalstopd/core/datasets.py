"""Several datasets under one metric's name: told apart by the logged models that their values were logged with.

No history of MLflow's says of which dataset a value is. Where it was logged with a logged model too, that model says
it: with the same metric, step, time and value.
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evalstopd.core.curve import is_score
from evalstopd.core.mixed import mixed_caution, repeated
from evalstopd.core.model import Point

# With a metric's name, a run's id and the rest it is part of a database's key, which must not grow too long.
_LONGEST_NAME = 200
_DIGEST = re.compile(r"[0-9A-Za-z_.:/+=-]{0,64}", re.ASCII)
_MOST = 100
_FEWEST_STEPS = 3
_SHOWN = 4
_LONGEST_SHOWN = 60

Mark = tuple[str, int, int, float]
"""What a value is known by in a run: metric, step, the client's time in milliseconds, the value itself."""


class Dataset(NamedTuple):
    """A dataset as MLflow names it; datasets of one name and another digest have other contents."""

    name: str
    digest: str

    @property
    def text(self) -> str:
        """Return it as one text, from which `dataset_of` makes it again."""
        return f"{self.name}@{self.digest}"


def dataset_of(text: str) -> Dataset:
    """Return the dataset of such a text."""
    name, _, digest = text.rpartition("@")
    return Dataset(name, digest)


def as_dataset(name: str, digest: str) -> Dataset | None:
    """Return a dataset as somebody wrote it; None for none, and for what no sane program calls one."""
    sane = 0 < len(name) <= _LONGEST_NAME and name.isprintable() and _DIGEST.fullmatch(digest)
    return Dataset(name, digest) if sane else None


def fits(asked: str, dataset: Dataset) -> bool:
    """Tell whether a choice means a dataset: by its name, its digest, or both as `name@digest`."""
    return bool(asked) and asked in (dataset.name, dataset.digest, dataset.text)


@dataclass(frozen=True, slots=True)
class Told:
    """Of which datasets each value was logged, by the logged models of a run; what they do not tell is not there."""

    of: Mapping[Mark, frozenset[Dataset]]

    def datasets(self, metric: str, point: Point) -> frozenset[Dataset]:
        """Return the datasets that a point is told to be of."""
        return self.of.get((metric, point.step, point.timestamp_ms, point.value), frozenset())

    def beside(self, metric: str, points: Sequence[Point], dataset: Dataset) -> tuple[Point, ...]:
        """Return what was logged beside a dataset's values, but for what is told to be of other datasets alone."""
        return tuple(each for each in points if not (of := self.datasets(metric, each)) or dataset in of)


@dataclass(frozen=True, slots=True)
class Parted:
    """A metric's points as they may be judged: those of `dataset` alone, or all where that is empty.

    `untold` says why the points of several series could not be told apart, where they would have to be.
    """

    points: tuple[Point, ...]
    dataset: str = ""
    untold: str = ""


def needs_telling(points: Sequence[Point], asked: str, *, apart: bool, labelled: bool) -> bool:
    """Tell whether the run's logged models are to be asked of which dataset each point is.

    Where nobody chose one, only to name them, once it is certain that they are several. Where one is chosen, from the
    first value on: of a run that is `labelled` (values may have been logged with models), and for good once its points
    were told `apart` from others. Where no model is known, from the first step with two values next to each other.
    """
    if asked and points and (apart or labelled or repeated(points)):
        return True
    return mixed_caution(points) is not None


def parted(metric: str, points: Sequence[Point], told: Told | str, asked: str, *, apart: bool) -> Parted:
    """Return the points of the dataset that is asked for, by what the logged models told (or why they did not).

    Where they cannot be told apart, that is said if there certainly are several series, or it could be done before.
    Where a dataset is asked for, also if the models tell of any, or could not be asked: there may be others' values;
    within the first steps its own may still come, so that there is none yet and nothing to say.
    """
    found = told if isinstance(told, str) else _told_apart(metric, points, told, asked)
    if isinstance(found, Parted):
        return found
    certain = apart or mixed_caution(points) is not None
    if certain or not (asked and _may_tell(metric, points, told)):
        return Parted(tuple(points), untold=found if certain else "")
    begun = len({each.step for each in points}) >= _FEWEST_STEPS
    return Parted(tuple(points), untold=found) if begun else Parted(())


def _may_tell(metric: str, points: Sequence[Point], told: Told | str) -> bool:
    return isinstance(told, str) or any(told.datasets(metric, each) for each in points)


def _told_apart(metric: str, points: Sequence[Point], told: Told, asked: str) -> Parted | str:
    scores = [each for each in points if is_score(each.value)]
    counts = Counter(dataset for each in scores for dataset in told.datasets(metric, each))
    chosen = _chosen(asked, counts)
    if isinstance(chosen, str):
        return chosen
    stray = [each for each in scores if not told.datasets(metric, each)]
    lost = len(stray) - len(_still_coming(scores, stray))
    if lost:
        return (
            f"{lost} of {len(scores)} values were logged without a dataset or a logged model, beside {_listed(counts)}"
        )
    return Parted(tuple(each for each in scores if chosen in told.datasets(metric, each)), chosen.text)


def _chosen(asked: str, counts: Mapping[Dataset, int]) -> Dataset | str:
    """Return the one dataset that is asked for, or why there is none."""
    if not counts:
        return (
            "no logged model tells of which dataset each value is (it does where log_metric had dataset= and model_id=)"
        )
    if len(counts) > _MOST:
        return f"they are of more than {_MOST} datasets"
    fitting = [each for each in counts if fits(asked, each)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        return f"{_word(asked)} means {_listed(fitting)}: {_HOW}, here by its digest"
    begins = f"{_word(asked)} is none of" if asked else "they are of"
    return f"{begins} {_listed(counts)}: {_HOW}"


def _still_coming(scores: Sequence[Point], stray: Sequence[Point]) -> list[Point]:
    """Return the points of the newest step whose datasets may not be written yet: the value comes before them."""
    newest = max(scores, key=lambda each: (each.timestamp_ms, each.step))
    before_ms = max((each.timestamp_ms for each in scores if each.step != newest.step), default=-(2**63))
    return [each for each in stray if each.step == newest.step and each.timestamp_ms >= before_ms]


_HOW = "the owner's evalstop_dataset=NAME (or its digest), else the site's rules.dataset, chooses one"


def _listed(datasets: Collection[Dataset]) -> str:
    shown = sorted(datasets)[:_SHOWN]
    more = f" and {len(datasets) - len(shown)} more" if len(datasets) > len(shown) else ""
    kind = "the dataset" if len(datasets) == 1 else f"{len(datasets)} datasets:"
    return f"{kind} {', '.join(map(_named, shown))}{more}"


def _named(dataset: Dataset) -> str:
    return f"{_word(dataset.name)} (digest {_word(dataset.digest)})"


def _word(text: str) -> str:
    """Return user text fit for a line."""
    cut = text[:_LONGEST_SHOWN]
    plain = text.isascii() and text.isprintable() and text == cut
    return text if plain else ascii(cut)
