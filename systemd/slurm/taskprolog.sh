#!/bin/sh
# TaskProlog, as the job's owner: what it prints as `export ...` becomes part of the task's environment, and so
# reaches containers. Argument: the folder of the secrets.
case ${SLURM_JOB_ID:-} in '' | *[!0-9]*) exit 0 ;; esac
# Tags for each run that MLflow starts by itself, without the plugin: who has set the variable himself keeps it.
# They have the cluster as accounting does, in small letters.
case ${SLURM_CLUSTER_NAME:-} in
'' | *[!a-z0-9_.-]*) ;;
*)
    [ -n "${MLFLOW_RUN_CONTEXT:-}" ] ||
        echo "export MLFLOW_RUN_CONTEXT={\"slurm.job_id\":\"$SLURM_JOB_ID\",\"slurm.cluster\":\"$SLURM_CLUSTER_NAME\"}"
    ;;
esac
file=${1:-/run/evalstopd-jobs}/$SLURM_JOB_ID/secret
[ -r "$file" ] && IFS= read -r secret <"$file" || exit 0
case $secret in *[!0-9a-f.]*) exit 0 ;; esac
echo "export EVALSTOP_JOB_SECRET=$secret"
exit 0
