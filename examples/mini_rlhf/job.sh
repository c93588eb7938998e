#!/bin/bash
# A Slurm job of one miniature run; submit it from the folder that shall hold the checkpoints:
#   sbatch --gpus=1 --export=ALL,PYTHON=/path/to/python,EXAMPLES=/path/to/examples job.sh --kl 0 --seed 4
# MLFLOW_TRACKING_URI says where to log; PROGRAM=replay plays a recorded run where torch is missing.
export PYTHONPATH="$EXAMPLES"
exec "${PYTHON:-python3}" -m "mini_rlhf.${PROGRAM:-train}" --output-dir "out-${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}${SLURM_ARRAY_TASK_ID:+_$SLURM_ARRAY_TASK_ID}" "$@"
