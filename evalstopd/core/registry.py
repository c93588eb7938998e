"""Promotion to the tracker's model registry: when an intent asks for it, and the names it may use there."""

import re
from collections.abc import Mapping
from string import Formatter

from evalstopd.core.intent import Intent, State
from evalstopd.core.model import JobKey

ALIAS = "evalstop-best"
MODELS = "models:/"
"""How the tracker's addresses of models begin; a path of the keeper's is absolute."""
WANTED, WAITING, REFUSED = "wanted", "waiting", "refused"
"""What `Intent.model` says until the model version is there: to be registered; the same, and said to wait; never."""
PENDING = frozenset({WANTED, WAITING})

_PARTS = frozenset({"cluster", "job", "uid", "account"})
_LITERAL = re.compile(r"[A-Za-z0-9_-]*", re.ASCII)
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]", re.ASCII)
_LONGEST_PART = 64
_PROMOTED = (State.PROMOTED, State.SIGNALLED, State.CANCELLED, State.HELD, State.CONFIRMED)


def asks(intent: Intent) -> bool:
    """Tell whether the intent's published checkpoint is still to be registered."""
    return intent.model in PENDING and intent.state in _PROMOTED


def is_logged(kept_path: str) -> bool:
    """Tell whether a kept checkpoint is a logged model, not the keeper's files."""
    return kept_path.startswith(MODELS)


def check_template(template: str) -> None:
    """Raise ValueError for a template of model names that has anything but letters, digits, `-`, `_` and known parts.

    A name without a part of the job would make all jobs one series, which fight over the alias.
    """
    parts: set[str | None] = set()
    for literal, part, form, conversion in Formatter().parse(template):
        if not _LITERAL.fullmatch(literal):
            raise ValueError("a model's name has letters, digits, - and _ beside its parts")
        if part is not None and (part not in _PARTS or form or conversion):
            raise ValueError(f"the parts of a model's name are {{{'}, {'.join(sorted(_PARTS))}}}")
        parts.add(part)
    if not {"job", "uid", "account"} & parts:
        raise ValueError("a model's name needs {job}, {uid} or {account}")


def model_name(template: str, key: JobKey, account: str) -> str:
    """Return the registered model's name for a job; what is not a letter, digit, `-` or `_` in a part becomes `-`."""
    values = {"cluster": key.cluster, "job": key.job_id, "uid": str(key.uid), "account": account}
    return template.format_map({name: _safe(value) for name, value in values.items()})


def version_tags(intent: Intent) -> Mapping[str, str]:
    """Return what a model version's readers are told."""
    dataset = {"evalstop.dataset": intent.evidence.dataset} if intent.evidence.dataset else {}
    return {
        "evalstop.job": intent.key.job_id,
        "evalstop.step": str(intent.evidence.kept_step),
        "evalstop.metric": intent.evidence.metric,
        "evalstop.checkpoint": intent.kept_path,
        "evalstop.intent": intent.id,
    } | dataset


def _safe(part: str) -> str:
    return _UNSAFE.sub("-", part)[:_LONGEST_PART] or "-"
