"""Train a small network by a loop of one's own, with plain MLflow: one score an eval, one file a checkpoint.

As in huggingface.py a third of the training labels are wrong, so the accuracy on clean data peaks and falls.
"""

import argparse
from pathlib import Path

import mlflow
import torch

SIZE, EVERY, KEPT = 20, 20, 5


def data(count: int, wrong: float, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(count, SIZE, generator=generator)
    labels = inputs[:, :3].sum(dim=1) > 0
    flipped = torch.rand(count, generator=generator) < wrong
    return inputs, (labels ^ flipped).long()


def save(folder: Path, step: int, state: dict[str, object]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(state, folder / f"step_{step:06d}.pt")
    for old in sorted(folder.glob("step_*.pt"))[:-KEPT]:
        old.unlink()


def train(options: argparse.Namespace) -> None:
    torch.manual_seed(1)
    width = options.width
    model = torch.nn.Sequential(
        torch.nn.Linear(SIZE, width),
        torch.nn.ReLU(),
        torch.nn.Linear(width, width),
        torch.nn.ReLU(),
        torch.nn.Linear(width, 2),
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr)
    start = 0
    if options.resume:
        state = torch.load(options.resume, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        start = state["step"]
        print(f"going on from step {start}")
    inputs, labels = data(600, wrong=0.3, seed=1)
    held_out, truth = data(5000, wrong=0.0, seed=2)
    for step in range(start + 1, options.steps + 1):
        batch = torch.randint(0, len(inputs), (256,))
        loss = torch.nn.functional.cross_entropy(model(inputs[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % EVERY == 0:
            with torch.no_grad():
                score = (model(held_out).argmax(dim=1) == truth).float().mean().item()
            mlflow.log_metrics({"train/loss": loss.item(), "val/accuracy": score}, step=step)
            state = {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
            save(Path(options.output_dir), step, state)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--output-dir", default="out")
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--lr", type=float, default=3e-5)
    parser.add_argument("--resume", default=None, help="a checkpoint to go on from")
    options = parser.parse_args()
    with mlflow.start_run():
        mlflow.log_params(vars(options))
        train(options)


if __name__ == "__main__":
    main()
