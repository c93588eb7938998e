"""Settings: frozen, nested, from TOML and EVALSTOPD_ variables; an unknown key is refused by name."""

import difflib
import hashlib
import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    SecretStr,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, SettingsError

from evalstopd.core.caps import Caps
from evalstopd.core.detectors import DETECTORS, detector
from evalstopd.core.lineup import PriorityRules
from evalstopd.core.model import Mode, Rung, StopAction
from evalstopd.core.policies import ELASTIC, policy
from evalstopd.core.preempt import PreemptRules
from evalstopd.core.registry import check_template
from evalstopd.core.rules import ActionRule, Rules, ServerClass
from evalstopd.core.shift import Lever
from evalstopd.core.spec import parse_spec
from evalstopd.errors import Misconfigured

PREFIX = "EVALSTOPD_"
CONFIG_VARIABLE = "EVALSTOPD_CONFIG"
LOSS_AWARE = "loss-aware"
# LossAware would take a job's GPUs on the word of numbers that others write.
PREEMPTIVE = ("srtf-est", "las")
DEFAULT_PATH = Path("/etc/evalstopd/evalstopd.toml")


def _rung(value: object) -> Rung:
    words = {rung.word: rung for rung in Rung}
    if isinstance(value, Rung):
        return value
    if not isinstance(value, str) or value not in words:
        raise ValueError(f"one of {', '.join(words)} is needed")
    return words[value]


_RungWord = Annotated[Rung, BeforeValidator(_rung), PlainSerializer(lambda rung: rung.word, return_type=str)]
# Blanks are no reason.
_Reason = Annotated[str, StringConstraints(strip_whitespace=True)]
_PASSWORD = re.compile(r"(?<=://)[^/@\s]+(?=@)")


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SlurmSettings(_Part):
    """How Slurm is spoken to. `time_limit_s` bounds each command; `conf` is the site's slurm.conf if not the usual.

    No pass asks Slurm sooner than `min_call_interval_s` seconds after the one before.
    """

    time_limit_s: float = Field(default=5.0, gt=0, le=60)
    min_call_interval_s: float = Field(default=0.0, ge=0, le=3600)
    conf: str = ""
    path: str = "/usr/bin:/usr/sbin:/bin:/sbin"


class MlflowSettings(_Part):
    """Where the runs are. `server` says who can write to a run: its owner only, or (`open`) anyone."""

    tracking_uri: str = ""
    server: ServerClass = ServerClass.OPEN
    time_limit_s: float = Field(default=5.0, gt=0, le=60)
    username: str = ""
    password: SecretStr = SecretStr("")
    token: SecretStr = SecretStr("")
    workspace: str = ""
    proxy: SecretStr = SecretStr("")
    ca_file: str = ""
    client_cert: str = ""
    database: SecretStr = SecretStr("")


class PromotionSettings(_Part):
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


class BindingSettings(_Part):
    """By what a run is proven to be a job's beside the job's comment.

    `mac_key` is the file of the site key, by which jobs' seals are checked. `tags` is the admin's written statement
    that the server itself sets a run's user to who logged in: then the tags of such a run prove it, too.
    """

    mac_key: str = ""
    tags: _Reason = ""


class KeeperSettings(_Part):
    """Where the privileged helper listens."""

    socket: Path = Path("/run/evalstopd/keeper.sock")
    time_limit_s: float = Field(default=90.0, gt=0)


class StoreSettings(_Part):
    """Where decisions are kept: SQLite on a local disk, or PostgreSQL.

    Of the daemons on one PostgreSQL that name the same `lease` one leads; it lasts `lease_s` seconds unless renewed.
    `keep_days` is for points and watches of jobs over for so long; 0 keeps them.
    """

    url: str = "sqlite:////var/lib/evalstopd/evalstopd.db"
    lease: str = Field(default="evalstopd", min_length=1, max_length=200)
    lease_s: float = Field(default=15.0, gt=0, le=600)
    keep_days: float = Field(default=0.0, ge=0)


class RuleSettings(_Part):
    """Who is watched, how far the daemon may go, and by which rule; `proxy` names the training reward, if any.

    `items` is the number of items behind each eval of `metric`, a share in [0, 1], where runs do not log it.
    `metrics` are patterns of names to choose from, best first, after `metric`; `modes` says which way is better.
    """

    rung: _RungWord = Rung.OBSERVE
    rule: str = "recommended"
    metric: str = ""
    proxy: str = ""
    items: int = Field(default=0, ge=0, le=10**12)
    mode: Mode = Mode.MAX
    metrics: tuple[str, ...] = ()
    modes: dict[str, Mode] = {}
    partitions: tuple[str, ...] = ()
    exempt_accounts: tuple[str, ...] = ()
    candidates: int = Field(default=3, ge=1, le=20)
    pin_keep_days: float = Field(default=30.0, ge=0)
    stale_s: float = Field(default=900.0, gt=0)


class CapsSettings(_Part):
    """The most stops within an hour, and when breakers fall back to observe: at so many decisions or accounts."""

    stops: int = Field(default=20, ge=1)
    stops_per_account: int = Field(default=5, ge=1)
    gpu_share: float = Field(default=0.25, gt=0, le=1)
    breaker_decisions: int = Field(default=10, ge=2)
    breaker_accounts: int = Field(default=3, ge=2)
    hold_s: float = Field(default=86400.0, gt=0)


class ScorecardSettings(_Part):
    """What the site asks of a rule's card before it may warn or enforce; `*_max_wronged` bound the share from above."""

    min_evals: int = Field(default=6, ge=1)
    warn_min_jobs: int = Field(default=30, ge=1)
    warn_min_days: float = Field(default=7.0, ge=0)
    warn_max_wronged: float = Field(default=0.20, ge=0, le=1)
    enforce_min_jobs: int = Field(default=100, ge=1)
    enforce_min_days: float = Field(default=28.0, ge=0)
    enforce_max_wronged: float = Field(default=0.05, ge=0, le=1)


class StopActionSettings(_Part):
    """How some jobs are stopped: those of a partition, with a metric, judged by a rule; what is left out fits all."""

    stop_action: StopAction
    partition: str = ""
    metric: str = ""
    rule: str = ""


class EnforceSettings(_Part):
    """A written reason to enforce without a passed scorecard, the owner's notice in seconds, how jobs are stopped.

    Of `actions` the first that fits a job counts, else `stop_action`.
    """

    override: _Reason = ""
    stop_action: StopAction = StopAction.CANCEL
    actions: tuple[StopActionSettings, ...] = ()
    notice_s: float = Field(default=1800.0, ge=0)


class TrustSettings(_Part):
    """The admin's written acceptance that points on an open MLflow server may cost a job."""

    open_mlflow: _Reason = ""


class DaemonSettings(_Part):
    """The loop's period in seconds, its kill switch and its log."""

    tick_s: float = Field(default=30.0, ge=0.2, le=3600)
    kill_switch: Path = Path("/etc/evalstopd/STOP")
    log_level: str = Field(default="INFO", pattern="^(DEBUG|INFO|WARNING|ERROR)$")


class MetricsSettings(_Part):
    """Where Prometheus may scrape the daemon: `port` 0 is nowhere. Who can reach `host` can read it all."""

    port: int = Field(default=0, ge=0, le=65535)
    host: str = Field(default="127.0.0.1", pattern=r"^[0-9A-Fa-f.:]+$")


class PrioritySettings(_Part):
    """In which order waiting jobs are to start: `policy` is a base policy, empty: as Slurm has it.

    `mechanism` is Nice, or Priority, which multifactor then leaves alone. `max_changes` are made at a time,
    `min_interval_s` seconds apart; what an owner resets is set again `reassert` times. `loss_aware` allows the policy
    of that name, which ranks by `loss_metric`, written by users: it takes no job more than `loss_gain` places forward.
    """

    policy: str = ""
    partitions: tuple[str, ...] = ()
    mechanism: Lever = Lever.NICE
    max_changes: int = Field(default=50, ge=2, le=500)
    min_interval_s: float = Field(default=60.0, ge=0, le=86400)
    reassert: int = Field(default=3, ge=0, le=100)
    loss_aware: bool = False
    loss_metric: str = "loss"
    loss_gain: int = Field(default=10, ge=1, le=10_000)


_LOCAL = r"[A-Za-z0-9_][A-Za-z0-9._+-]*"
_DOMAIN = r"[A-Za-z0-9][A-Za-z0-9.-]*"


class NotifySettings(_Part):
    """How owners are told: the daemon's log, a program of the site's, mail; any of them together. Times in seconds.

    `smtp_admin` is who gets what is about no job: that a limit was lifted in writing.
    """

    kinds: tuple[Literal["log", "command", "smtp"], ...] = ("log",)
    most_waiting: int = Field(default=200, ge=1, le=100_000)
    command: tuple[str, ...] = ()
    command_time_limit_s: float = Field(default=10.0, gt=0, le=300)
    smtp_host: str = "localhost"
    smtp_port: int = Field(default=0, ge=0, le=65535)
    smtp_security: Literal["starttls", "tls", "none"] = "starttls"
    smtp_user: str = ""
    smtp_password_file: str = ""
    smtp_ca_file: str = ""
    smtp_from: str = Field(default="", pattern=rf"^$|^{_LOCAL}@{_DOMAIN}$")
    smtp_to: str = Field(default="", pattern=rf"^$|^({_LOCAL}|[A-Za-z0-9._+-]*\{{user\}}[A-Za-z0-9._+-]*)@{_DOMAIN}$")
    smtp_admin: str = Field(default="", pattern=rf"^$|^{_LOCAL}@{_DOMAIN}$")
    smtp_time_limit_s: float = Field(default=20.0, gt=0, le=300)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        """Refuse a kind without what it needs, and a password that would go over the wire for all to read."""
        faults = (
            (not self.kinds, 'kinds is empty: "log" is the least'),
            ("command" in self.kinds and not self.command, 'kinds has "command", but command names no program'),
            (bool(self.command) and not self.command[0].startswith("/"), "command: an absolute path is needed"),
            ("smtp" in self.kinds and not (self.smtp_from and self.smtp_to), '"smtp" needs smtp_from and smtp_to'),
            (bool(self.smtp_user) != bool(self.smtp_password_file), "smtp_user and smtp_password_file go together"),
            (bool(self.smtp_user) and self.smtp_security == "none", "no password is sent without starttls or tls"),
        )
        fault = next((text for holds, text in faults if holds), None)
        if fault is not None:
            raise ValueError(fault)
        return self


class EstimateSettings(_Part):
    """How far back accounting is read for estimates of jobs' lengths; `always`: although no policy needs them."""

    days: float = Field(default=30.0, gt=0, le=3650)
    always: bool = False


class PreemptSettings(_Part):
    """When a running job is requeued for a waiting one: `policy` srtf-est or las, empty: never. Times in seconds.

    It must have run for `min_run_s`, with a verified checkpoint no older than `fresh_s`; within an hour `per_hour` jobs
    yield at most, one job `per_job` times. `cost_s` is how long Slurm keeps a requeued job from starting.
    """

    policy: str = ""
    cost_s: float = Field(default=120.0, ge=0, le=86400)
    min_run_s: float = Field(default=1800.0, ge=0)
    fresh_s: float = Field(default=900.0, gt=0)
    per_hour: int = Field(default=4, ge=1, le=1000)
    per_job: int = Field(default=2, ge=1, le=100)


class Settings(BaseSettings):
    """All settings, in effect: variables win over the file, the file over the defaults."""

    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", env_prefix=PREFIX, env_nested_delimiter="__", env_ignore_empty=True
    )

    slurm: SlurmSettings = SlurmSettings()
    mlflow: MlflowSettings = MlflowSettings()
    binding: BindingSettings = BindingSettings()
    keeper: KeeperSettings = KeeperSettings()
    store: StoreSettings = StoreSettings()
    rules: RuleSettings = RuleSettings()
    caps: CapsSettings = CapsSettings()
    scorecard: ScorecardSettings = ScorecardSettings()
    enforce: EnforceSettings = EnforceSettings()
    trust: TrustSettings = TrustSettings()
    daemon: DaemonSettings = DaemonSettings()
    notify: NotifySettings = NotifySettings()
    metrics: MetricsSettings = MetricsSettings()
    estimates: EstimateSettings = EstimateSettings()
    preempt: PreemptSettings = PreemptSettings()
    priorities: PrioritySettings = PrioritySettings()
    promotion: PromotionSettings = PromotionSettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Let variables win over the file's values, which come in as keyword arguments."""
        del settings_cls, dotenv_settings, file_secret_settings
        return env_settings, init_settings

    @property
    def digest(self) -> str:
        """Return a short digest of the settings in effect, without secrets."""
        return hashlib.sha256(json.dumps(self.shown, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def shown(self) -> dict[str, dict[str, Any]]:
        """Return the settings in effect for people: secrets and what stands before an `@` in an address masked."""
        dumped: dict[str, dict[str, Any]] = self.model_dump(mode="json")
        return {part: {key: _masked(value) for key, value in keys.items()} for part, keys in dumped.items()}


def load_settings(path: Path | None, environment: Mapping[str, str] | None = None) -> Settings:
    """Read the settings. Raises Misconfigured with one line that names what is wrong and what was meant."""
    environment = os.environ if environment is None else environment
    chosen, named = _chosen(path, environment)
    values = _read(chosen, named=named)
    _refuse_unknown_variables(environment)
    try:
        settings = Settings(**values)
    except ValidationError as error:
        raise Misconfigured(f"{chosen if values else 'settings'}: {_first_fault(error)}") from None
    except SettingsError as error:
        raise Misconfigured(f'{error}: in a variable a list is written as ["a", "b"]') from None
    _check(settings)
    return _paced(settings)


def settings_source(path: Path | None, environment: Mapping[str, str] | None = None) -> str:
    """Return in words which file `load_settings` reads."""
    chosen, _ = _chosen(path, os.environ if environment is None else environment)
    return f"read from {chosen}" if chosen.exists() else f"there is no {chosen}: the defaults, and variables"


def _chosen(path: Path | None, environment: Mapping[str, str]) -> tuple[Path, bool]:
    """Return the settings file, and whether it was named: only the default one may be missing."""
    variable = environment.get(CONFIG_VARIABLE)
    return path or Path(variable or DEFAULT_PATH), path is not None or bool(variable)


def make_rules(settings: Settings) -> Rules:
    """Return the site's rules as the core wants them; the rule with all its numbers: a version may change them."""
    return Rules(
        rung=settings.rules.rung,
        rule=detector(settings.rules.rule, settings.rules.mode).spec,
        metric=settings.rules.metric,
        proxy=settings.rules.proxy,
        items=settings.rules.items,
        mode=settings.rules.mode,
        metrics=settings.rules.metrics,
        modes=tuple(settings.rules.modes.items()),
        partitions=settings.rules.partitions,
        exempt_accounts=settings.rules.exempt_accounts,
        server=settings.mlflow.server,
        open_server_accepted=settings.trust.open_mlflow,
        notice_s=settings.enforce.notice_s,
        tick_s=settings.daemon.tick_s,
        stale_s=settings.rules.stale_s,
        candidates=settings.rules.candidates,
        caps=Caps(**settings.caps.model_dump()),
        action=settings.enforce.stop_action,
        actions=tuple(
            ActionRule(each.stop_action, each.partition, each.metric, each.rule) for each in settings.enforce.actions
        ),
    )


def make_priorities(settings: Settings) -> PriorityRules | None:
    """Return how waiting jobs are put in order; None where that is Slurm's business alone."""
    asked = settings.priorities
    if not asked.policy:
        return None
    return PriorityRules(
        policy=policy(asked.policy),
        partitions=asked.partitions,
        lever=asked.mechanism,
        most=asked.max_changes,
        interval_s=asked.min_interval_s,
        reassert=asked.reassert,
        gain=asked.loss_gain if parse_spec(asked.policy).name == LOSS_AWARE else None,
        loss_metric=asked.loss_metric if parse_spec(asked.policy).name == LOSS_AWARE else "",
    )


def make_preempt(settings: Settings) -> PreemptRules | None:
    """Return when running jobs yield to waiting ones; None where they never do."""
    asked = settings.preempt
    if not asked.policy:
        return None
    return PreemptRules(**{**asked.model_dump(), "policy": policy(asked.policy)})


def _check_preempt(asked: PreemptSettings) -> None:
    if not asked.policy:
        return
    try:
        made = policy(asked.policy)
    except ValueError as error:
        raise Misconfigured(f"preempt.policy: {error}") from None
    if parse_spec(asked.policy).name not in PREEMPTIVE:
        raise Misconfigured(f"preempt.policy: {made.spec} requeues no running job; {' or '.join(PREEMPTIVE)} does")


def _paced(settings: Settings) -> Settings:
    """Return the settings with passes no closer together than Slurm may be asked."""
    tick_s = max(settings.daemon.tick_s, settings.slurm.min_call_interval_s)
    return settings.model_copy(update={"daemon": settings.daemon.model_copy(update={"tick_s": tick_s})})


def _read(path: Path, *, named: bool) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if named:
            raise Misconfigured(f"{path}: no such file") from None
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise Misconfigured(f"{path}: {error}") from None


def _masked(value: object) -> object:
    return _PASSWORD.sub("***", value) if isinstance(value, str) else value


def _check(settings: Settings) -> None:
    try:
        detector(settings.rules.rule, settings.rules.mode)
    except ValueError as error:
        raise Misconfigured(f"rules.rule: {error}") from None
    for each in settings.enforce.actions:
        if each.rule and each.rule not in DETECTORS:
            raise Misconfigured(f"enforce.actions: {each.rule!a} is no rule; known: {', '.join(sorted(DETECTORS))}")
    _check_policy(settings.priorities)
    _check_preempt(settings.preempt)
    if settings.binding.tags and settings.mlflow.server is not ServerClass.AUTHENTICATED:
        raise Misconfigured('binding.tags: tags prove nothing unless mlflow.server is "authenticated"')


def _check_policy(asked: PrioritySettings) -> None:
    """Refuse what cannot be had on a live cluster."""
    if not asked.policy:
        return
    try:
        name = parse_spec(asked.policy).name
        if name in ELASTIC:
            raise ValueError(f"{name} gives running jobs more or fewer GPUs, which Slurm cannot: it is for simulations")
        policy(asked.policy)
    except ValueError as error:
        raise Misconfigured(f"priorities.policy: {error}") from None
    if name == LOSS_AWARE and not (asked.loss_aware and asked.loss_metric):
        why = "ranks on numbers that users write: it needs priorities.loss_aware = true and a loss_metric"
        raise Misconfigured(f"priorities.policy: {LOSS_AWARE} {why}")


def _first_fault(error: ValidationError) -> str:
    fault = error.errors(include_url=False, include_input=False)[0]
    where = [str(part) for part in fault["loc"]]
    name = ".".join(where)
    if fault["type"] == "extra_forbidden":
        return f"unknown key {name}{_nearest(name)}"
    return f"{name}: {fault['msg']}"


def _nearest(name: str) -> str:
    close = difflib.get_close_matches(name, list(known_keys()), n=1, cutoff=0.5)
    return f"; did you mean {close[0]}?" if close else ""


def known_keys() -> Iterator[str]:
    """Yield every key as `part.key`, and the parts themselves."""
    for part, info in Settings.model_fields.items():
        yield part
        if isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel):
            yield from (f"{part}.{key}" for key in info.annotation.model_fields)


def _refuse_unknown_variables(environment: Mapping[str, str]) -> None:
    known = {f"{PREFIX}{key.replace('.', '__')}".upper() for key in known_keys()} | {CONFIG_VARIABLE}
    for name in sorted(environment):
        if name.upper().startswith(PREFIX) and name.upper() not in known:
            close = difflib.get_close_matches(name.upper(), sorted(known), n=1, cutoff=0.5)
            raise Misconfigured(f"unknown variable {name}{f'; did you mean {close[0]}?' if close else ''}")
