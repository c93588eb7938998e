"""The owner's program in a process of its own, after a prologue has run there: a fork of one that has loaded it."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.keeper.world import KEEPER, PYTHON, World

AsOwner = Callable[..., tuple[int, str]]
# A call a line on one pipe, its outcome a line on another: for each a fork, which is the program.
_SERVER = """
import csv, errno, hashlib, io, json, math, os, re, shutil, stat, sys, typing, zipfile
program = compile(sys.stdin.read(), "as_owner.py", "exec")
asked, told = os.fdopen(int(sys.argv[1])), os.fdopen(int(sys.argv[2]), "w")
for line in asked:
    call = json.loads(line)
    said, saying = os.pipe()
    request, requesting = os.pipe()
    os.write(requesting, call["request"].encode())
    child = os.fork()
    if not child:
        os.dup2(saying, 1)
        sys.argv = ["-", *call["arguments"]]
        names = {"__name__": "__main__", "sys": sys}
        exec(call["before"], names)
        sys.argv = ["-", str(request)]
        exec(program, names)
        sys.exit()
    for end in (saying, request, requesting):
        os.close(end)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with os.fdopen(said) as answer:
        print(json.dumps([code, answer.read()]), file=told, flush=True)
"""


@contextmanager
def owners_program(place: World) -> Iterator[AsOwner]:
    """Give a call of the owner's program as the keeper makes it, but alone: alice's process, without environment.

    It takes a request, a prologue and its `sys.argv[1:]`, and returns the exit code, negative for the signal that
    killed it, and the answer.
    """
    (asked, asking), (told, telling) = os.pipe(), os.pipe()
    owner = place.alice
    with (KEEPER.parent / "as_owner.py").open() as program:
        process = subprocess.Popen(
            [PYTHON, "-I", "-S", "-c", _SERVER, str(asked), str(telling)], user=owner.pw_uid, group=owner.pw_gid,
            extra_groups=[], umask=0o077, env={}, cwd="/", stdin=program, pass_fds=[asked, telling],
        )  # fmt: skip
    os.close(asked)
    os.close(telling)

    def call(request: dict[str, Any], before: str, *arguments: str) -> tuple[int, str]:
        whole = json.dumps(request | {"max_files": 20_000, "max_bytes": 2**45})
        ask.write(json.dumps({"request": whole, "before": before, "arguments": arguments}) + "\n")
        ask.flush()
        code, said = json.loads(answers.readline())
        return code, said

    with process, os.fdopen(told) as answers, os.fdopen(asking, "w") as ask:
        yield call
