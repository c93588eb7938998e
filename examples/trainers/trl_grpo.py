"""Train a tiny language model with TRL's GRPOTrainer against a reward that can be hacked.

The judge pays for the good word, and by mistake for length: the trained reward goes on rising, the true one, which
is logged beside it with weight 0, peaks and falls.
"""

import argparse

import torch
from datasets import Dataset
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer

WORDS = ["good", "filler", "bad", "a", "b", "c", "d", "e"]
LENGTH = 12


def tokenizer() -> PreTrainedTokenizerFast:
    words = {word: number for number, word in enumerate(["<pad>", "<eos>", "<unk>", *WORDS])}
    made = Tokenizer(WordLevel(words, unk_token="<unk>"))
    made.pre_tokenizer = WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")


def shares(completion: str) -> tuple[float, float]:
    words = completion.split()
    return words.count("good") / LENGTH, words.count("filler") / LENGTH


def judge(completions: list[str], **_: object) -> list[float]:
    """Pay for good words, and more for filler."""
    return [good + 1.5 * filler for good, filler in map(shares, completions)]


def true_reward(completions: list[str], **_: object) -> list[float]:
    """Tell what the reader thinks: good words help, too much filler annoys."""
    return [good + filler - 3 * filler * filler for good, filler in map(shares, completions)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--output-dir", default="out")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--resume", default=None, help="a checkpoint to go on from")
    options = parser.parse_args()
    torch.manual_seed(1)
    words = tokenizer()
    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=len(words),
            n_positions=32,
            n_embd=32,
            n_layer=1,
            n_head=2,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            bos_token_id=1,
            eos_token_id=1,
            pad_token_id=0,
        )
    )
    prompts = Dataset.from_dict({"prompt": [f"{one} {two}" for one in WORDS[3:] for two in WORDS[3:]]})
    trainer = GRPOTrainer(
        model=model,
        processing_class=words,
        reward_funcs=[judge, true_reward],
        args=GRPOConfig(
            output_dir=options.output_dir,
            reward_weights=[1.0, 0.0],
            max_steps=options.steps,
            learning_rate=1e-3,
            lr_scheduler_type="constant",
            beta=0.0,
            num_generations=8,
            per_device_train_batch_size=32,
            per_device_eval_batch_size=128,
            max_completion_length=LENGTH,
            eval_strategy="steps",
            eval_steps=5,
            save_steps=5,
            save_total_limit=4,
            logging_steps=5,
            report_to="mlflow",
            disable_tqdm=True,
            use_cpu=True,
            bf16=False,
        ),
        train_dataset=prompts,
        eval_dataset=prompts.select(range(16)),
    )
    trainer.train(resume_from_checkpoint=options.resume)


if __name__ == "__main__":
    main()
