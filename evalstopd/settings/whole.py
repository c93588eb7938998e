"""All sections together, and what of them may be shown."""

import hashlib
import json
from typing import Any

from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from evalstopd.settings.faults import masked
from evalstopd.settings.judging import (
    BindingSettings,
    CapsSettings,
    EnforceSettings,
    PromotionSettings,
    RuleSettings,
    ScorecardSettings,
    TrustSettings,
)
from evalstopd.settings.notify import NotifySettings
from evalstopd.settings.outside import (
    DaemonSettings,
    KeeperSettings,
    MetricsSettings,
    MlflowSettings,
    SlurmSettings,
    StoreSettings,
)
from evalstopd.settings.waiting import EstimateSettings, PreemptSettings, PrioritySettings

PREFIX = "EVALSTOPD_"


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


class Given(Settings):
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
