"""The folder that a demo makes and empties."""

import shutil
from pathlib import Path


def fresh(directory: Path) -> Path:
    """Empty the directory of an earlier demo and copy the examples where the jobs' users can read them."""
    if directory.exists():
        shutil.rmtree(directory)
    directory.mkdir(parents=True)
    directory.chmod(0o755)
    examples = directory / "examples"
    shutil.copytree(Path(__file__).parent.parent, examples, ignore=shutil.ignore_patterns("__pycache__"))
    for path in (examples, *examples.rglob("*")):
        path.chmod(0o755)
    return examples
