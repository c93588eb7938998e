"""The one tree of errors: what each kind costs (a pass, an intent, the start, the process)."""

from collections.abc import Sequence


class EvalstopError(Exception):
    """Anything this project raises on purpose."""


class Unavailable(EvalstopError):
    """A source or a target does not answer as it should; skip this pass, try again later."""


class Rejected(EvalstopError):
    """The world said no to one thing (no right, unknown id, not the owner's); only that thing is affected."""


class InDoubt(EvalstopError):
    """Something was handed over and no answer tells whether it was taken: shown as unknown, never done again."""


class PastCaps(Rejected):
    """One run, or all the runs of one job, are more than the caps allow: it is quarantined, and nothing else."""


class NotRequeueable(Rejected):
    """Slurm may not requeue this job: it was submitted so, or has no batch script that could start anew."""


class Deposed(EvalstopError):
    """Another daemon leads, or soon may: this one writes and does nothing more. Ends the pass, not the process."""


class Misconfigured(EvalstopError):
    """A setting is wrong; the message names it. Ends the start, never a running daemon. Exit code 78."""

    exit_code = 78


class WrongSettings(Misconfigured):
    """Settings are wrong: `faults` has a line on each that is."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = tuple(faults)


class WrongUsage(Misconfigured):
    """A command was given what it cannot work on: an argument, an option, or a file that one names. Exit code 2."""

    exit_code = 2


class Fatal(EvalstopError):
    """Going on could do harm (a store of another version, a broken invariant). Ends the process."""

    exit_code = 70


class CheckpointMissing(EvalstopError):
    """There is no such checkpoint folder or pin: not yet, or no longer."""


class CheckpointFailed(EvalstopError):
    """The file work went wrong (time-out, no space, an I/O error): worth a few more tries."""


class CheckpointIncomplete(EvalstopError):
    """The checkpoint is there but not whole; it may become whole."""
