"""Play a recorded run of `train.py` where torch is missing: same logging, checkpoints, rotation and link.

The scores in curves.json come from real runs (see README.md); the checkpoints hold those scores, no policy.
"""

import argparse
from collections.abc import Sequence

from . import job
from .recorded import find


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    job.add_arguments(parser)
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    options = parse(argv)
    recording, shell = find(options.kl, options.seed), job.from_arguments(options)
    print("this is a replay of a recorded run: nothing is trained here", flush=True)
    found = shell.checkpoints.newest_complete()
    earlier = found[1] if found else []
    points = recording.play(earlier[-1].step if earlier else 0)
    shell.run(points, earlier, {**recording.recipe, "replay": True}, recording.save)


if __name__ == "__main__":
    main()
