#!/bin/bash
# Change core a little in thousands of ways and see whether its tests notice: mutation.sh BASE [PATTERN...]
# Prints the score and the names of the mutants that survived; PATTERN ("evalstopd.core.policies*") runs a part.
set -euo pipefail
bin=$1/venv/bin
shift
rm -rf mutants  # else mutmut keeps the fate of mutants whose tests have changed since
"$bin/mutmut" run --max-children "$(nproc)" "$@"
"$bin/mutmut" results | { grep -v "not checked" || true; }
"$bin/mutmut" export-cicd-stats >/dev/null
"$bin/python" - <<'END'
import json

with open("mutants/mutmut-cicd-stats.json") as file:
    found = json.load(file)
noticed = found["killed"] + found["timeout"] + found["segfault"]
tested = noticed + found["survived"] + found["no_tests"] + found["suspicious"]
print(f"{noticed} of {tested} mutants were noticed: {noticed / tested:.1%} (docs/mutation.md judges the others)")
END
