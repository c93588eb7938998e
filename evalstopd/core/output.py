"""Where a job's checkpoints lie: by its owner's word, else by what its trainer logged, else where Lightning saves."""

import re

from evalstopd.core.binding import OUTPUT_PARAMS, RunFacts
from evalstopd.core.guards import Caution
from evalstopd.core.rules import Rules, ServerClass, owners_params
from evalstopd.core.watch import Terms
from evalstopd.core.wishes import Wishes

OUTPUT_DIR_TAG = "evalstop.output_dir"
_UNHEARD = Caution(
    "output-parameter",
    "that the run's parameter names an output folder counts for nothing, for any user can set it on an open MLflow "
    "server: name the output folder in the job's comment, evalstop_output=DIR",
    refuse=False,
)
_NAME = re.compile(r"[0-9A-Za-z_-]{1,64}", re.ASCII)


def output_dir(wishes: Wishes, run: RunFacts, first: Terms, rules: Rules) -> str | None:
    """Return the folder, absolute or below the job's working directory; None where nothing tells it.

    A tag counts only where the server checks who writes it, and did when the job was first seen. `owners_params` says
    where a parameter does.
    """
    checked = first.trusted and rules.server is ServerClass.AUTHENTICATED
    tag, params = run.tags.get(OUTPUT_DIR_TAG) if checked else None, owners_params(run, first, rules)
    logged = (params.get(name) for name in OUTPUT_PARAMS)
    return next((each for each in (wishes.output, tag, *logged) if each), None) or lightnings(run)


def unheard(wishes: Wishes, run: RunFacts, first: Terms, rules: Rules) -> Caution | None:
    """Return what its owner should write where only a parameter that does not count names the folder.

    The parameter's own text is not shown: it may be what a stranger wants to be taken for the owner's folder.
    """
    named = any(run.params.get(name) for name in OUTPUT_PARAMS)
    return None if wishes.output or not named or owners_params(run, first, rules) else _UNHEARD


def lightnings(run: RunFacts) -> str | None:
    """Return where Lightning's ModelCheckpoint saves if not told where; its MLFlowLogger logs no folder."""
    names = (run.experiment_id, run.run_id)
    return "/".join((*names, "checkpoints")) if all(map(_NAME.fullmatch, names)) else None
