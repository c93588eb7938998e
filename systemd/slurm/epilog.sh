#!/bin/sh
# Epilog of slurmd, as root: takes the job's secret away. Argument: the folder of the secrets.
case ${SLURM_JOB_ID:-} in '' | *[!0-9]*) exit 0 ;; esac
folder=${1:-/run/evalstopd-jobs}/$SLURM_JOB_ID
/bin/rm -f -- "$folder/secret"
[ ! -d "$folder" ] || /bin/rmdir -- "$folder"
exit 0
