"""Stopping rules, one a file, all folds over a job's curve."""

from evalstopd.core.detectors.k_declines import KDeclines
from evalstopd.core.detectors.never import Never
from evalstopd.core.detectors.registry import DETECTORS, detector
from evalstopd.core.detectors.verdict import (
    KEEP_GOING,
    Declining,
    Detector,
    KeepGoing,
    Stop,
    Verdict,
    fold,
)

__all__ = [
    "DETECTORS",
    "KEEP_GOING",
    "Declining",
    "Detector",
    "KDeclines",
    "KeepGoing",
    "Never",
    "Stop",
    "Verdict",
    "detector",
    "fold",
]
