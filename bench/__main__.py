"""Run every measurement; the exit code tells whether all kept to their limits."""

import sys

from bench import rules, simulator, store

sys.exit(max([rules.main(), simulator.main(), store.main()]))
