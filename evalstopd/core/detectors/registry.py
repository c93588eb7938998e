"""The one list of detectors, by the name that settings, store and command line use."""

import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any

from evalstopd.core.detectors.blocks import Blocks
from evalstopd.core.detectors.drop_test import DropTestPaper, DropTestSafe, HighPower
from evalstopd.core.detectors.elapsed_fraction import ElapsedFraction
from evalstopd.core.detectors.guaranteed import Guaranteed
from evalstopd.core.detectors.k_declines import KDeclines
from evalstopd.core.detectors.loss_plateau import LossPlateau
from evalstopd.core.detectors.never import Never
from evalstopd.core.detectors.patience import Patience
from evalstopd.core.detectors.recommended import Recommended
from evalstopd.core.detectors.smoothed_declines import SmoothedDeclines
from evalstopd.core.detectors.verdict import Detector
from evalstopd.core.model import Mode
from evalstopd.core.spec import Spec, parse_spec

DETECTORS: Mapping[str, Callable[..., Detector]] = MappingProxyType(
    {
        "blocks": Blocks,
        "drop-test-paper": DropTestPaper,
        "drop-test-safe": DropTestSafe,
        "elapsed-fraction": ElapsedFraction,
        "guaranteed": Guaranteed,
        "high-power": HighPower,
        "k-declines": KDeclines,
        "loss-plateau": LossPlateau,
        "never": Never,
        "patience": Patience,
        "recommended": Recommended,
        "smoothed-declines": SmoothedDeclines,
    }
)


_PLAIN = (("ema", 1.0), ("noise", 0.0))
"""What turns smoothed-declines into k-declines: no smoothing, no margin of noise."""


def detector(spec: str | Spec, mode: Mode = Mode.MAX) -> Detector:
    """Make a detector from text such as `k-declines:k=2,min_delta=0.06`.

    `k-declines` with `ema` or `noise` is smoothed-declines, without the one that is not named. Raises ValueError, in
    words a user understands, for an unknown name or parameter or a bad value.
    """
    parsed = _smoothed(parse_spec(spec) if isinstance(spec, str) else spec)
    made = DETECTORS.get(parsed.name)
    if made is None:
        raise ValueError(f"unknown rule {parsed.name!r}; known: {', '.join(sorted(DETECTORS))}")
    taken = parameters(made)
    unknown = [name for name, _ in parsed.params if name not in taken]
    if unknown:
        raise ValueError(f"rule {parsed.name} has no parameter {unknown[0]!r}; it has: {', '.join(taken) or 'none'}")
    given: dict[str, Any] = {name: taken[name](value) for name, value in parsed.params}
    return made(**given, mode=mode) if _directed(made) else made(**given)


def parameters(made: Callable[..., Detector]) -> dict[str, Callable[[float], float | int]]:
    """Return the numeric parameters of a detector and how each is read from a number."""
    return {f.name: _whole if f.type is int else float for f in fields(made) if f.type in (int, float)}  # type: ignore[arg-type]


def _smoothed(spec: Spec) -> Spec:
    named = {name for name, _ in spec.params}
    if spec.name != "k-declines" or named.isdisjoint(dict(_PLAIN)):
        return spec
    return Spec("smoothed-declines", (*spec.params, *(pair for pair in _PLAIN if pair[0] not in named)))


def _directed(made: Callable[..., Detector]) -> bool:
    return any(f.name == "mode" for f in fields(made))  # type: ignore[arg-type]


def _whole(value: float) -> int:
    if not math.isfinite(value) or value != int(value):
        raise ValueError(f"a whole number is needed, not {value:g}")
    return int(value)
