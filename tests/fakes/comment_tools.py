"""A `squeue` and a `scontrol` over one comment in a file, between whose calls another writer gets in."""

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

_TOOL = """#!{python}
import json, pathlib, sys
state = pathlib.Path({state!r})
held = json.loads(state.read_text())
name = {name!r}
if name == "squeue":
    print(held["comment"] + sys.argv[-1].removeprefix("Comment:"))
else:
    held["comment"] = sys.argv[-1].removeprefix("Comment=")
held["calls"].append(name)
held["comment"] = held["others"].pop(str(len(held["calls"])), held["comment"])
state.write_text(json.dumps(held))
"""


@dataclass(frozen=True, slots=True)
class CommentTools:
    """What lies in `folder`: both tools and the state. `others` maps the number of a call to what is written after."""

    folder: Path

    def lay(self, comment: str, others: dict[int, str]) -> None:
        self._state.write_text(json.dumps({"comment": comment, "calls": [], "others": others}))
        for name in ("squeue", "scontrol"):
            tool = self.folder / name
            tool.write_text(_TOOL.format(python=sys.executable, state=str(self._state), name=name))
            tool.chmod(0o755)

    @property
    def path(self) -> str:
        """Return the PATH under which they are found first."""
        return f"{self.folder}{os.pathsep}{os.environ['PATH']}"

    @property
    def comment(self) -> str:
        return str(json.loads(self._state.read_text())["comment"])

    @property
    def calls(self) -> list[str]:
        return list(json.loads(self._state.read_text())["calls"])

    @property
    def _state(self) -> Path:
        return self.folder / "state.json"
