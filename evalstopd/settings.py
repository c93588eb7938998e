"""Settings: frozen, nested, from TOML, credentials and EVALSTOPD_ variables; an unknown key is refused by name."""

import hashlib
import json
import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    SecretStr,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from evalstopd.core.caps import Caps
from evalstopd.core.detectors import detector
from evalstopd.core.lineup import PriorityRules
from evalstopd.core.model import Mode, Rung, StopAction
from evalstopd.core.policies import policy
from evalstopd.core.preempt import PreemptRules
from evalstopd.core.registry import check_template
from evalstopd.core.rules import ActionRule, Rules, ServerClass
from evalstopd.core.shift import Lever
from evalstopd.core.spec import parse_spec
from evalstopd.errors import Misconfigured, WrongSettings
from evalstopd.faults import Fault, bad_json, faults_of, known_keys, masked, merged, nearest, shown, wants_json, without
from evalstopd.handed import handed
from evalstopd.sense import CHECKS, LOSS_AWARE

PREFIX = "EVALSTOPD_"
CONFIG_VARIABLE = "EVALSTOPD_CONFIG"
DEFAULT_PATH = Path("/etc/evalstopd/evalstopd.toml")
MOST_TICK_S = 300
"""A third of the unit's WatchdogSec, which a good pass feeds: a daemon that comes by more seldom would be ended."""
_MOST_LINES, _LONGEST_LINE = 50, 900
_JSON_WORDS = 'in a variable a list is written as ["a", "b"], a table as {"a": "b"}'


def _rung(value: object) -> Rung:
    words = {rung.word: rung for rung in Rung}
    if isinstance(value, Rung):
        return value
    if not isinstance(value, str) or value not in words:
        raise ValueError(f"one of {', '.join(words)} is needed")
    return words[value]


_RungWord = Annotated[Rung, BeforeValidator(_rung), PlainSerializer(lambda rung: rung.word, return_type=str)]
_ModeWord = Annotated[
    Mode | None,
    BeforeValidator(lambda value: None if value == "" else value),
    PlainSerializer(lambda mode: mode or "", return_type=str),
]
# Blanks are no reason.
_Reason = Annotated[str, StringConstraints(strip_whitespace=True)]
_ADDRESS_WORDS = "one plain mail address, as in evalstopd@site.example,"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth(cls, value: object, info: ValidationInfo) -> object:
        """Refuse true and false for a number: pydantic takes them for 1 and 0."""
        if isinstance(value, bool) and cls.model_fields[str(info.field_name)].annotation in (int, float):
            raise ValueError("a number is needed")
        return value


class SlurmSettings(_Part):
    """How Slurm is spoken to. `time_limit_s` bounds each command; `conf` is the site's slurm.conf if not the usual.

    No pass asks Slurm sooner than `min_call_interval_s` seconds after the one before.
    """

    time_limit_s: float = Field(default=5.0, gt=0, le=60)
    min_call_interval_s: float = Field(default=0.0, ge=0, le=MOST_TICK_S)
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
    A take-over lasts four thirds of that at most, so two passes where `lease_s` is up to 1.5 times `daemon.tick_s`.
    `keep_days` is for points and watches of jobs over for so long; 0 keeps them.
    """

    url: str = "sqlite:////var/lib/evalstopd/evalstopd.db"
    lease: str = Field(default="evalstopd", min_length=1, max_length=200)
    lease_s: float = Field(default=15.0, gt=0, le=600)
    keep_days: float = Field(default=0.0, ge=0)


class RuleSettings(_Part):
    """Who is watched, how far the daemon may go, and by which rule; `proxy` names the training reward, if any.

    `items` is the number of items behind each eval of `metric`, a share in [0, 1], where runs do not log it.
    `metrics` are patterns of names to choose from, best first, after `metric`; `modes` says which way is better, for
    `metric` alone `mode` does, and no default: a direction that nobody said is enforced nowhere.
    `dataset` is the name or digest of the one that judges where a metric has the evals of several.
    """

    rung: _RungWord = Rung.OBSERVE
    rule: str = "recommended"
    metric: str = ""
    proxy: str = ""
    items: int = Field(default=0, ge=0, le=10**12)
    mode: _ModeWord = Field(default=None, description="one of max, min")
    metrics: tuple[str, ...] = ()
    modes: dict[str, Mode] = {}
    dataset: str = Field(default="", max_length=265)
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

    Of `actions` the first that fits a job counts, else `stop_action`. With `logged_models` a stop may rest on a
    checkpoint that is nothing but a logged model, which nobody but the tracking server keeps.
    """

    override: _Reason = ""
    logged_models: bool = False
    stop_action: StopAction = StopAction.CANCEL
    actions: tuple[StopActionSettings, ...] = ()
    notice_s: float = Field(default=1800.0, ge=0)


class TrustSettings(_Part):
    """The admin's written acceptance that points on an open MLflow server may cost a job."""

    open_mlflow: _Reason = ""


class DaemonSettings(_Part):
    """The loop's period in seconds, its kill switch and its log."""

    tick_s: float = Field(default=30.0, ge=0.2, le=MOST_TICK_S)
    kill_switch: Path = Path("/etc/evalstopd/STOP")
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"


class MetricsSettings(_Part):
    """Where Prometheus may scrape the daemon: `port` 0 is nowhere. Who can reach `host` can read it all."""

    port: int = Field(default=0, ge=0, le=65535)
    host: str = Field(default="127.0.0.1", pattern=r"^[0-9A-Fa-f.:]+$", description="a numeric address in quotes")


_AnyCase = Annotated[str, StringConstraints(to_lower=True)]


class PrioritySettings(_Part):
    """In which order waiting jobs are to start: `policy` is a base policy, empty: as Slurm has it.

    `mechanism` is Nice, or Priority, which multifactor then leaves alone. `max_changes` are made at a time,
    `min_interval_s` seconds apart; what an owner resets is set again `reassert` times. `loss_aware` allows the policy
    of that name, which ranks by `loss_metric`, written by users: it takes no job more than `loss_gain` places forward.
    """

    policy: _AnyCase = ""
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
    smtp_from: str = Field(default="", pattern=rf"^$|^{_LOCAL}@{_DOMAIN}$", description=_ADDRESS_WORDS)
    smtp_to: str = Field(
        default="",
        pattern=rf"^$|^({_LOCAL}|[A-Za-z0-9._+-]*\{{user\}}[A-Za-z0-9._+-]*)@{_DOMAIN}$",
        description="one mail address, with {user} for the owner's name, as in {user}@site.example,",
    )
    smtp_admin: str = Field(default="", pattern=rf"^$|^{_LOCAL}@{_DOMAIN}$", description=_ADDRESS_WORDS)
    smtp_time_limit_s: float = Field(default=20.0, gt=0, le=300)


class EstimateSettings(_Part):
    """How far back accounting is read for estimates of jobs' lengths; `always`: although no policy needs them."""

    days: float = Field(default=30.0, gt=0, le=3650)
    always: bool = False


class PreemptSettings(_Part):
    """When a running job is requeued for a waiting one: `policy` srtf-est or las, empty: never. Times in seconds.

    It must have run for `min_run_s`, with a verified checkpoint no older than `fresh_s`; within an hour `per_hour` jobs
    yield at most, one job `per_job` times. `cost_s` is how long Slurm keeps a requeued job from starting.
    """

    policy: _AnyCase = ""
    cost_s: float = Field(default=120.0, ge=0, le=86400)
    min_run_s: float = Field(default=1800.0, ge=0)
    fresh_s: float = Field(default=900.0, gt=0)
    per_hour: int = Field(default=4, ge=1, le=1000)
    per_job: int = Field(default=2, ge=1, le=100)


class Settings(BaseSettings):
    """All settings, in effect: variables win over systemd's credentials, these over the file, it over the defaults."""

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
        return {part: {key: masked(value) for key, value in keys.items()} for part, keys in dumped.items()}


class _Given(Settings):
    """Settings from what it is given alone."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Leave the variables out."""
        del settings_cls, env_settings, dotenv_settings, file_secret_settings
        return (init_settings,)


def load_settings(path: Path | None, environment: Mapping[str, str] | None = None) -> Settings:
    """Read the settings. Raises WrongSettings with a line on each that is wrong: what was given, what is needed."""
    environment = os.environ if environment is None else environment
    chosen, named = _chosen(path, environment)
    files, values = handed(environment, _single_keys()), _read(chosen, named=named)
    values = merged(values, files)
    faults = [*_unknown_variables(environment), *_wrong(values, environment)]
    if faults:
        source = str(chosen) if values else "settings"
        lines = [f"{_from(each, source, environment, files)}{each.text}"[:_LONGEST_LINE] for each in faults]
        more = [f"{len(lines) - _MOST_LINES} more settings are wrong"] if len(lines) > _MOST_LINES else []
        raise WrongSettings([*lines[:_MOST_LINES], *more])
    return _paced(Settings(**values))


def _wrong(values: Mapping[str, Any], environment: Mapping[str, str]) -> Iterator[Fault]:
    """Yield all that is wrong with the file's values and the variables', in the sections' order."""
    garbled = [*_garbled_variables(environment)]
    given = without(values, [each.place for each in garbled])
    try:
        given = given if garbled else merged(values, without(EnvSettingsSource(Settings)(), _strange(environment)))
    except SettingsError:
        yield Fault((), f"a variable that begins with {PREFIX} cannot be read: {_JSON_WORDS}")
    found = garbled
    try:
        sound = _Given(**given)
    except ValidationError as error:
        found = [*garbled, *faults_of(Settings, error)]
        sound = _Given(**without(given, [each.place for each in found]))
    together = [fault for check in CHECKS for fault in check(sound) if fault.stands(found)]
    sections = list(Settings.model_fields)
    yield from sorted((*found, *together), key=lambda each: (*sections, each.place[0]).index(each.place[0]))


def _from(fault: Fault, source: str, environment: Mapping[str, str], files: Mapping[str, Mapping[str, Any]]) -> str:
    """Return where a setting comes from, before what is wrong with it."""
    variables = {name.upper(): name for name, value in environment.items() if value}
    names = (f"{PREFIX}{'__'.join(map(str, fault.place[:most]))}".upper() for most in (2, 1))
    named = next((variables[name] for name in names if fault.place and name in variables), None)
    if not fault.place:
        return ""
    if named:
        return f"variable {named}: "
    by_file = len(fault.place) > 1 and fault.place[1] in files.get(str(fault.place[0]), {})
    return "credential " if by_file else f"{source}: "  # whose name is the key's, with which the text begins


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
        rule=detector(settings.rules.rule, settings.rules.mode or Mode.MAX).spec,
        metric=settings.rules.metric,
        proxy=settings.rules.proxy,
        items=settings.rules.items,
        mode=settings.rules.mode,
        metrics=settings.rules.metrics,
        modes=tuple(settings.rules.modes.items()),
        dataset=settings.rules.dataset,
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
        logged_models=settings.enforce.logged_models,
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
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise Misconfigured(f"{path}: {error}") from None


def _unknown_variables(environment: Mapping[str, str]) -> Iterator[Fault]:
    for name in _strange(environment).values():
        yield Fault((), f"unknown variable {name}{nearest(name.upper(), {*_variables(), CONFIG_VARIABLE})}")


def _strange(environment: Mapping[str, str]) -> dict[tuple[str, ...], str]:
    """Return the variables that look like ours and are not, by the place that they would set."""
    known = {*_variables(), CONFIG_VARIABLE}
    found = (name for name in sorted(environment) if name.upper().startswith(PREFIX) and name.upper() not in known)
    return {tuple(name[len(PREFIX) :].lower().split("__")): name for name in found}


def _garbled_variables(environment: Mapping[str, str]) -> Iterator[Fault]:
    """Yield the variables of lists, tables and sections that are no JSON."""
    places = _variables()
    for name, value in sorted(environment.items()):
        place = places.get(name.upper(), ())
        if place and value and wants_json(Settings, place) and bad_json(value):
            yield Fault(place, f"{'.'.join(place)}: {_JSON_WORDS}, not {shown(value)}")


def _single_keys() -> set[str]:
    """Return the keys whose value is a single one, `section.key`."""
    return {key for key in known_keys(Settings) if "." in key and not wants_json(Settings, tuple(key.split(".")))}


def _variables() -> dict[str, tuple[str, ...]]:
    """Return the key that each variable sets."""
    return {f"{PREFIX}{key.replace('.', '__')}".upper(): tuple(key.split(".")) for key in known_keys(Settings)}
