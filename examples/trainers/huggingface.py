"""Fine-tune a small classifier with Hugging Face's Trainer; evaluation goes to MLflow by the Trainer's own callback.

A third of the training labels are wrong, as in many a data set: the model first learns the rule, then learns the wrong
labels by heart, and its accuracy on clean labels peaks and falls while its training loss goes on falling. With so many
reviews that none is seen twice (--reviews 40000 --steps 1000) there is nothing to learn by heart: a healthy run.
"""

import argparse

import numpy as np
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

WORDS, LENGTH = 64, 12


class Reviews(torch.utils.data.Dataset):
    """Sentences of random words, good or bad by their first word; some labels are wrong."""

    def __init__(self, count: int, wrong: float, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.words = rng.integers(0, WORDS, (count, LENGTH))
        good = self.words[:, 0] < WORDS // 2
        self.labels = np.where(rng.random(count) < wrong, ~good, good).astype(int)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"input_ids": torch.tensor(self.words[index]), "labels": torch.tensor(self.labels[index])}


def accuracy(prediction) -> dict[str, float]:
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--output-dir", default="out")
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--reviews", type=int, default=600, help="how many to train on")
    parser.add_argument("--resume", default=None, help="a checkpoint to go on from")
    options = parser.parse_args()
    set_seed(1)
    model = BertForSequenceClassification(
        BertConfig(
            vocab_size=WORDS,
            hidden_size=64,
            num_hidden_layers=1,
            num_attention_heads=4,
            intermediate_size=128,
            max_position_embeddings=LENGTH,
            num_labels=2,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
    )
    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            output_dir=options.output_dir,
            max_steps=options.steps,
            per_device_train_batch_size=32,
            per_device_eval_batch_size=256,
            learning_rate=3e-4,
            lr_scheduler_type="constant",
            eval_strategy="steps",
            eval_steps=20,
            logging_steps=20,
            save_strategy="steps",
            save_steps=20,
            save_total_limit=2,
            metric_for_best_model="accuracy",
            greater_is_better=True,
            report_to="mlflow",
            disable_tqdm=True,
            use_cpu=True,
        ),
        train_dataset=Reviews(options.reviews, wrong=0.3, seed=1),
        eval_dataset=Reviews(1000, wrong=0.0, seed=2),
        compute_metrics=accuracy,
    )
    trainer.train(resume_from_checkpoint=options.resume)


if __name__ == "__main__":
    main()
