"""What a metric's name says of its direction, however it is spelled: it only ever raises a doubt."""

import pytest

from evalstopd.core.model import Mode
from evalstopd.core.naming import guessed_mode, spoken_for, words

LESS = (
    "valLoss", "ValLoss", "valloss", "val.loss", "val:loss", "val loss", "val__loss", "VAL-LOSS", "loss2",
    "val_loss_0", "val_err", "valErr", "valerr", "top5_err", "error@0.7", "val/error_rate", "ErrorRate",
    "word_error_rate", "validation_0-logloss", "validation_0-mlogloss", "validation_1-merror",
    "valid_0 binary_logloss", "LogLoss", "eval-error", "eval-rmsle", "eval-mphe", "eval-poisson-nloglik",
    "test-gamma-deviance", "valid_0/multi_error", "valid_0_cross_entropy_lambda", "valid_0_xentlambda",
    "valid_0-l2", "val_l1", "val_L2", "valCrossEntropy", "val_crossentropy", "sparse_categorical_crossentropy",
    "val_xent", "val_bce", "val/NLL", "val_rmse", "valRMSE", "testmse", "val_mape", "val_smape", "meanSquaredError",
    "mean_absolute_percentage_error", "val_brier_score", "BrierScore", "val/ece", "val/EER", "val_ter", "eval_wer",
    "eval/CER", "bits_per_byte", "bitsPerByte", "bits_per_character", "val_bpb", "eval/bpc",
    "wikitext/word_perplexity", "valPPL", "val_fpr", "val/FNR", "false_positive_rate", "val_fid", "FID50k",
    "val/kid", "LPIPS", "val_hinge", "eval/kl", "kl_div", "KLDivergence", "val_deviance", "val_dice_loss",
    "val_acc_loss", "MSELoss",
)  # fmt: skip
MORE = (
    "valAccuracy", "val_acc", "valacc", "acc1", "top_5_accuracy", "validation_0-auc", "validation_0-aucpr",
    "valid_0-map", "eval-ndcg@5", "NDCG", "val_mAP", "mAP50", "val_f1", "valF1", "F1Score", "macro_f1", "r2",
    "r2_score", "valR2", "R_squared", "roc_auc", "AUROC", "rouge1", "rougeL", "BLEU4", "mIoU", "val_dice",
    "recall@10", "win_rate", "winRate", "exact_match", "pass@1", "eval_rewards/mean",
    "interval-regression-accuracy",
)  # fmt: skip
NEITHER = (
    "score",
    "glossary",
    "val_gloss",
    "lossless",
    "terror",
    "val_mirror",
    "eval/fidelity",
    "tokens_per_second",
    "neg_examples",
    "",
    "%",
    "\u043f\u043e\u0442\u0435\u0440\u044f",
)
BOTH = ("eval_error_accuracy", "val_map_error", "neg_log_loss", "neg_log_likelihood", "neg_mean_squared_error")


@pytest.mark.parametrize("metric", LESS)
def test_a_lower_is_better_metric_is_known_however_it_is_spelled(metric: str) -> None:
    assert guessed_mode(metric) is Mode.MIN


@pytest.mark.parametrize("metric", MORE)
def test_a_higher_is_better_metric_is_known_however_it_is_spelled(metric: str) -> None:
    assert guessed_mode(metric) is Mode.MAX


@pytest.mark.parametrize("metric", NEITHER)
def test_a_name_without_such_a_word_speaks_for_nothing(metric: str) -> None:
    assert spoken_for(metric) == frozenset()


@pytest.mark.parametrize("metric", BOTH)
def test_a_name_that_speaks_for_both_is_no_guess(metric: str) -> None:
    assert (spoken_for(metric), guessed_mode(metric)) == (frozenset(Mode), None)


def test_names_are_split_at_punctuation_digits_and_camel_case() -> None:
    assert words("validation_0-mlogLoss@3/MSELoss") == ("validation", "0", "mlog", "loss", "3", "mse", "loss")
