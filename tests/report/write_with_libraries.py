"""Write a run as the real libraries do, in a process of its own: `mlflow FOLDER` or `tensorboard FOLDER`."""

# ruff: noqa: PLC0415 - only the library that is asked for is imported

import sys

SCORES = [0.1, 0.3, 0.5, 0.7, 0.6, 0.5, 0.4, 0.3]


def mlflow(folder: str) -> None:
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=f"file:{folder}")
    run = client.create_run(client.create_experiment("past"), tags={"slurm.job_id": "17", "slurm.cluster": "red"})
    for step, score in enumerate(SCORES):
        client.log_metric(run.info.run_id, "eval/accuracy", score, step=step, timestamp=1_000 * step)
        client.log_metric(run.info.run_id, "eval/accuracy_n", 400, step=step, timestamp=1_000 * step)
        client.log_metric(run.info.run_id, "train loss", 1.0, step=step)
    client.set_terminated(run.info.run_id)


def tensorboard(folder: str) -> None:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.plugins.scalar.summary_v2 import scalar_pb
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(folder)
    for step, score in enumerate(SCORES):
        plain = Summary(value=[Summary.Value(tag="eval/plain", simple_value=score)])
        for summary in (plain, scalar_pb("eval/tensor", score)):
            writer.add_event(Event(wall_time=100.0 + step, step=step, summary=summary))
    writer.close()


if __name__ == "__main__":
    {"mlflow": mlflow, "tensorboard": tensorboard}[sys.argv[1]](sys.argv[2])
