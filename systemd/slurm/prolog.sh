#!/bin/sh
# Prolog of slurmd, as root: gives each job the secret by which it proves which MLflow run is its own.
# slurm.conf: Prolog=/usr/lib/evalstopd/prolog.sh, or call it from the Prolog that the site has.
# Arguments, if others than these: the site key (0400, root's) and the folder of the secrets.
# A failing Prolog would drain the node: whatever goes wrong is a line in slurmd's log, and the job goes without.
here=${0%/*}
/usr/bin/python3 -I -S "$here/job_secret.py" "${1:-/etc/evalstopd/mac-key}" "${2:-/run/evalstopd-jobs}"
exit 0
