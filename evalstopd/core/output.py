"""Where a job's checkpoints lie: by its owner's word, else by what its trainer logged, else where Lightning saves."""

import re

from evalstopd.core.binding import OUTPUT_PARAMS, RunFacts
from evalstopd.core.rules import Rules, ServerClass
from evalstopd.core.wishes import Wishes

OUTPUT_DIR_TAG = "evalstop.output_dir"
_NAME = re.compile(r"[0-9A-Za-z_-]{1,64}", re.ASCII)


def output_dir(wishes: Wishes, run: RunFacts, rules: Rules) -> str | None:
    """Return the folder, absolute or below the job's working directory; None where nothing tells it.

    Nobody can change a parameter once it is there. A tag can be written by anyone on an open server: there it counts
    for nothing.
    """
    tag = run.tags.get(OUTPUT_DIR_TAG) if rules.server is ServerClass.AUTHENTICATED else None
    logged = (run.params.get(name) for name in OUTPUT_PARAMS)
    return next((each for each in (wishes.output, tag, *logged) if each), None) or lightnings(run)


def lightnings(run: RunFacts) -> str | None:
    """Return where Lightning's ModelCheckpoint saves if not told where; its MLFlowLogger logs no folder."""
    names = (run.experiment_id, run.run_id)
    return "/".join((*names, "checkpoints")) if all(map(_NAME.fullmatch, names)) else None
