"""The keeper for one's own files, where nobody is root: the real program, but for the step of becoming the owner."""

import argparse
import os

from evalstopd.keeper import keeper


def stay(uid: int, args: argparse.Namespace) -> None:
    """Refuse to act for anybody else: there is no right to become them."""
    del args
    if uid != os.getuid():
        raise keeper.Refusal("refused", "without root the keeper works for its own user alone")
    os.umask(0o077)


if __name__ == "__main__":
    keeper.become = stay
    keeper.main()
