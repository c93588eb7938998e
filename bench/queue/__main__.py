"""Measure passes over 10,000 recorded jobs; print the figures, write JSON, exit 1 beyond a limit."""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.cluster.limits import tell

# Of the processor: the loop is one thread, and what else the machine does is no cost of ours.
LIMITS = {"tick_cpu_s": 2.0, "idle_cpu_s": 2.0, "decision_s": 0.2, "memory_mb": 300}
PATIENCE_S = 1_800.0


def measured(jobs: int) -> dict[str, object]:
    """Return the figures; tracker and loop are processes of their own, so that neither has the other's memory."""
    tracker = subprocess.Popen([sys.executable, "-m", "bench.queue.tracker"], stdout=subprocess.PIPE, text=True)
    try:
        with tempfile.TemporaryDirectory() as folder:
            if tracker.stdout is None:
                raise SystemExit("the tracker has no output")
            uri, figures = f"http://127.0.0.1:{tracker.stdout.readline().strip()}", Path(folder) / "figures.json"
            command = [sys.executable, "-m", "bench.queue.passes", uri, str(jobs), folder, str(figures)]
            subprocess.run(command, check=True, timeout=PATIENCE_S, stdout=sys.stderr)
            found: dict[str, object] = json.loads(figures.read_text())
            return found
    finally:
        tracker.kill()
        tracker.wait()


def main() -> int:
    """Measure, tell, and return 1 where a limit was passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--json", type=Path, default=Path("bench-queue.json"))
    asked = parser.parse_args()
    return tell(measured(asked.jobs), LIMITS, asked.json)


if __name__ == "__main__":
    sys.exit(main())
