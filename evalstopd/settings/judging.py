"""The sections that say who is judged, by what, and how far the daemon may go."""

from pydantic import Field, field_validator

from evalstopd.core.model import Mode, Rung, StopAction
from evalstopd.core.registry import check_template
from evalstopd.settings.part import ModeWord, Part, Reason, RungWord


class PromotionSettings(Part):
    """What becomes of a kept checkpoint beside the run's tags. Sizes in MiB, times in seconds."""

    registry: bool = False
    model: str = "evalstop-{cluster}-{job}"
    copy_mb: int = Field(default=0, ge=0, le=100_000)
    time_limit_s: float = Field(default=60.0, gt=0, le=3_600)

    @field_validator("model")
    @classmethod
    def _safe(cls, value: str) -> str:
        check_template(value)
        return value


class BindingSettings(Part):
    """By what a run is proven to be a job's beside the job's comment.

    `mac_key` is the file of the site key, by which jobs' seals are checked. `tags` is the admin's written statement
    that the server itself sets a run's user to who logged in: then the tags of such a run prove it, too.
    """

    mac_key: str = ""
    tags: Reason = ""


class RuleSettings(Part):
    """Who is watched, how far the daemon may go, and by which rule; `proxy` names the training reward, if any.

    `items` is the number of items behind each eval of `metric`, a share in [0, 1], where runs do not log it.
    `metrics` are patterns of names to choose from, best first, after `metric`; `modes` says which way is better, for
    `metric` alone `mode` does, and no default: a direction that nobody said is enforced nowhere.
    `dataset` is the name or digest of the one that judges where a metric has the evals of several.
    """

    rung: RungWord = Rung.OBSERVE
    rule: str = "recommended"
    metric: str = ""
    proxy: str = ""
    items: int = Field(default=0, ge=0, le=10**12)
    mode: ModeWord = Field(default=None, description="one of max, min")
    metrics: tuple[str, ...] = ()
    modes: dict[str, Mode] = Field(default={})
    dataset: str = Field(default="", max_length=265)
    partitions: tuple[str, ...] = ()
    exempt_accounts: tuple[str, ...] = ()
    candidates: int = Field(default=3, ge=1, le=20)
    pin_keep_days: float = Field(default=30.0, ge=0)
    stale_s: float = Field(default=900.0, gt=0)


class CapsSettings(Part):
    """The most stops within an hour, and when breakers fall back to observe: at so many decisions or accounts."""

    stops: int = Field(default=20, ge=1)
    stops_per_account: int = Field(default=5, ge=1)
    gpu_share: float = Field(default=0.25, gt=0, le=1)
    breaker_decisions: int = Field(default=10, ge=2)
    breaker_accounts: int = Field(default=3, ge=2)
    hold_s: float = Field(default=86400.0, gt=0)


class ScorecardSettings(Part):
    """What the site asks of a rule's card before it may warn or enforce; `*_max_wronged` bound the share from above."""

    min_evals: int = Field(default=6, ge=1)
    warn_min_jobs: int = Field(default=30, ge=1)
    warn_min_days: float = Field(default=7.0, ge=0)
    warn_max_wronged: float = Field(default=0.20, ge=0, le=1)
    enforce_min_jobs: int = Field(default=100, ge=1)
    enforce_min_days: float = Field(default=28.0, ge=0)
    enforce_max_wronged: float = Field(default=0.05, ge=0, le=1)


class StopActionSettings(Part):
    """How some jobs are stopped: those of a partition, with a metric, judged by a rule; what is left out fits all."""

    stop_action: StopAction
    partition: str = ""
    metric: str = ""
    rule: str = ""


class EnforceSettings(Part):
    """A written reason to enforce without a passed scorecard, the owner's notice in seconds, how jobs are stopped.

    Of `actions` the first that fits a job counts, else `stop_action`. With `logged_models` a stop may rest on a
    checkpoint that is nothing but a logged model, which nobody but the tracking server keeps.
    """

    override: Reason = ""
    logged_models: bool = False
    stop_action: StopAction = StopAction.CANCEL
    actions: tuple[StopActionSettings, ...] = ()
    notice_s: float = Field(default=1800.0, ge=0)


class TrustSettings(Part):
    """The admin's written acceptance that points on an open MLflow server may cost a job."""

    open_mlflow: Reason = ""
