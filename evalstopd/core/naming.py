"""What the words of a metric's name say of it: one way to split names, one list of words for each direction."""

import re
from collections.abc import Iterator, Sequence

from evalstopd.core.model import Mode

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_JOINED = 3
_GLUED = re.compile(r"^(?:validation|valid|val|evaluation|eval|testing|test|training|train|dev)(?=.)")
_LOSS = ("loss", "losses")
_ENDS = (*_LOSS, "error", "errors", "mse", "perplexity", "crossentropy")
_NOT_ENDS = frozenset(("gloss", "floss", "terror"))
_NEGATED = "neg"  # scikit-learn's `neg_mean_squared_error` is better higher, `neg_log_likelihood` is not

# Words that stand apart in a name are written here as one: `cross_entropy`, `crossEntropy` and `l2` are `crossentropy`
# and `l2`.
_LESS = frozenset(
    (
        # Losses and information.
        "loss", "losses", "nll", "nloglik", "negloglik", "negloglikelihood", "negativeloglikelihood", "neglogprob",
        "xent", "xentropy", "xentlambda", "crossentropy", "ce", "bce", "hinge", "huber", "quantile", "pinball",
        "deviance", "divergence", "kl", "kld", "kldiv", "jsd", "kullbackleibler", "perplexity", "perplexities",
        "ppl", "bpb", "bpc", "bpd", "bitsper", "natsper", "poisson", "gamma", "tweedie", "fair", "mphe",
        # Errors of numbers.
        "error", "errors", "err", "errs", "errorrate", "errrate", "mae", "mse", "rmse", "nrmse", "msle", "rmsle",
        "mape", "smape", "wmape", "mase", "medae", "l1", "l2", "linf", "rmsd", "distance", "dist", "epe", "absrel",
        # Errors of answers, and how well they are calibrated.
        "merror", "misclassification", "misclassified", "missrate", "fpr", "fnr", "far", "frr", "fdr", "eer",
        "falsepositive", "falsepositives", "falsenegative", "falsenegatives", "brier", "ece", "mce",
        # Speech, text, pictures and sounds.
        "wer", "cer", "ter", "mer", "fid", "kid", "fvd", "fad", "lpips", "niqe", "mcd", "chamfer", "hausdorff",
        # What training by reward is to avoid.
        "regret", "cost", "costs", "toxicity", "violation", "violations",
    )
)  # fmt: skip
_MORE = frozenset(
    (
        # Shares of right answers.
        "acc", "accs", "accuracy", "accuracies", "em", "exactmatch", "pass", "winrate", "solverate", "successrate",
        "success", "hitrate", "hit", "hits", "correct", "tpr", "tnr",
        # Classes and rankings.
        "auc", "aucs", "aucpr", "aucmu", "auroc", "auprc", "rocauc", "prauc", "f1", "f2", "fbeta", "fscore",
        "precision", "recall", "sensitivity", "specificity", "map", "ap", "averageprecision", "ndcg", "dcg", "mrr",
        "mcc", "kappa", "matthews",
        # Numbers.
        "r2", "rsquared", "explainedvariance", "pearson", "spearman", "kendall", "corr", "correlation",
        # Text, pictures and sounds.
        "bleu", "sacrebleu", "rouge", "rougel", "rougelsum", "meteor", "chrf", "cider", "spice", "bertscore", "iou",
        "miou", "dice", "jaccard", "psnr", "ssim", "snr", "sisdr", "pesq", "stoi", "clipscore",
        # Rewards.
        "reward", "rewards", "rew", "elo",
    )
)  # fmt: skip


def words(metric: str) -> tuple[str, ...]:
    """Return the words of a name in lower case: split at all but letters, at digits, and at camel case."""
    return tuple(word.lower() for word in _WORD.findall(metric))


def spoken_for(metric: str) -> frozenset[Mode]:
    """Return the directions that a name's words speak for, perhaps both; what is found here allows nothing.

    What ends in a loss is one, whatever it is the loss of (`dice_loss`).
    """
    found = words(metric)
    terms = frozenset(_terms(found))
    less = not _LESS.isdisjoint(terms) or any(map(_ends_less, found))
    more = (less and _NEGATED in terms) or not (_MORE.isdisjoint(terms) or _ends_less(found[-1], _LOSS))
    ways = ((Mode.MIN, less), (Mode.MAX, more))
    return frozenset(mode for mode, speaks in ways if speaks)


def guessed_mode(metric: str) -> Mode | None:
    """Return which way a metric's name speaks for, if for one."""
    ways = spoken_for(metric)
    return next(iter(ways)) if len(ways) == 1 else None


def _terms(found: Sequence[str]) -> Iterator[str]:
    """Yield each word, what is left of it without a `val` before it (`valacc`), and neighbours written as one."""
    for at, word in enumerate(found):
        yield word
        yield _GLUED.sub("", word, count=1)
        for count in range(2, _JOINED + 1):
            yield "".join(found[at : at + count])


def _ends_less(word: str, ends: tuple[str, ...] = _ENDS) -> bool:
    return word.endswith(ends) and word not in _NOT_ENDS
