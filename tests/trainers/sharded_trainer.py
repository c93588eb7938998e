"""Lightning's own sharded checkpoints by two processes on the CPU: FOLDER [CHECKPOINT to go on from]."""

import sys

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.strategies import ModelParallelStrategy
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader, TensorDataset

WIDTH = 1_500
EVERY, STEPS = 4, 16


class Net(LightningModule):
    """One wide layer, so that its shards take a while to be written."""

    def configure_model(self) -> None:
        if hasattr(self, "layer"):
            return
        self.layer = torch.nn.Linear(WIDTH, WIDTH)
        fully_shard(self.layer, mesh=self.device_mesh["data_parallel"])

    def training_step(self, batch: list[torch.Tensor], _: int) -> torch.Tensor:
        return self.layer(batch[0]).square().mean()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), 1e-3)


def main(folder: str, resume: str = "") -> None:
    """Train, saving every few steps, or go on for a few steps more."""
    keep = ModelCheckpoint(dirpath=folder, filename="{epoch}-{step}", save_top_k=-1, every_n_train_steps=EVERY)
    data = DataLoader(TensorDataset(torch.randn(4 * (STEPS + EVERY), WIDTH)), 2)
    strategy = ModelParallelStrategy(data_parallel_size=2, tensor_parallel_size=1, process_group_backend="gloo")
    steps = STEPS + EVERY if resume else STEPS
    Trainer(
        accelerator="cpu", devices=2, strategy=strategy, max_steps=steps, callbacks=[keep], logger=False,
        enable_progress_bar=False,
    ).fit(Net(), data, ckpt_path=resume or None)  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
