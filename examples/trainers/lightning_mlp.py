"""Train a small network with Lightning; its MLFlowLogger logs, its ModelCheckpoint keeps the best and the last ones.

As in huggingface.py a third of the training labels are wrong, so the accuracy on clean data peaks and falls.
"""

import argparse

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import MLFlowLogger
from torch.utils.data import DataLoader, TensorDataset

SIZE = 20


def data(count: int, wrong: float, seed: int) -> TensorDataset:
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(count, SIZE, generator=generator)
    labels = inputs[:, :3].sum(dim=1) > 0
    flipped = torch.rand(count, generator=generator) < wrong
    return TensorDataset(inputs, (labels ^ flipped).long())


class Classifier(lightning.LightningModule):
    def __init__(self, width: int = 256, lr: float = 3e-4) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.network = torch.nn.Sequential(
            torch.nn.Linear(SIZE, width),
            torch.nn.ReLU(),
            torch.nn.Linear(width, width),
            torch.nn.ReLU(),
            torch.nn.Linear(width, 2),
        )

    def training_step(self, batch: list[torch.Tensor], _: int) -> torch.Tensor:
        inputs, labels = batch
        loss = torch.nn.functional.cross_entropy(self.network(inputs), labels)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch: list[torch.Tensor], _: int) -> None:
        inputs, labels = batch
        scores = self.network(inputs)
        self.log("val_loss", torch.nn.functional.cross_entropy(scores, labels))
        self.log("val_acc", (scores.argmax(dim=1) == labels).float().mean())

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--resume", default=None, help="a checkpoint to go on from")
    options = parser.parse_args()
    lightning.seed_everything(1)
    trainer = lightning.Trainer(
        max_steps=options.steps,
        accelerator="cpu",
        devices=1,
        logger=MLFlowLogger(experiment_name="lightning"),
        callbacks=[ModelCheckpoint(monitor="val_acc", mode="max", save_top_k=1)],
        enable_progress_bar=False,
        log_every_n_steps=20,
    )
    training = DataLoader(data(600, wrong=0.3, seed=1), batch_size=32, shuffle=True)
    validation = DataLoader(data(2000, wrong=0.0, seed=2), batch_size=1000)
    trainer.fit(Classifier(), training, validation, ckpt_path=options.resume)


if __name__ == "__main__":
    main()
