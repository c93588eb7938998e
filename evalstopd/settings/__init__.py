"""Settings: frozen, nested, from TOML, credentials and EVALSTOPD_ variables; an unknown key is refused by name."""

from evalstopd.settings.faults import known_keys
from evalstopd.settings.judging import (
    BindingSettings,
    CapsSettings,
    EnforceSettings,
    PromotionSettings,
    RuleSettings,
    ScorecardSettings,
    StopActionSettings,
    TrustSettings,
)
from evalstopd.settings.load import load_settings, settings_source
from evalstopd.settings.made import make_preempt, make_priorities, make_rules
from evalstopd.settings.notify import NotifySettings
from evalstopd.settings.outside import (
    DaemonSettings,
    KeeperSettings,
    MetricsSettings,
    MlflowSettings,
    SlurmSettings,
    StoreSettings,
)
from evalstopd.settings.part import MOST_TICK_S
from evalstopd.settings.sense import PATHS, SPARE_S
from evalstopd.settings.waiting import EstimateSettings, PreemptSettings, PrioritySettings
from evalstopd.settings.whole import Settings

__all__ = [
    "MOST_TICK_S",
    "PATHS",
    "SPARE_S",
    "BindingSettings",
    "CapsSettings",
    "DaemonSettings",
    "EnforceSettings",
    "EstimateSettings",
    "KeeperSettings",
    "MetricsSettings",
    "MlflowSettings",
    "NotifySettings",
    "PreemptSettings",
    "PrioritySettings",
    "PromotionSettings",
    "RuleSettings",
    "ScorecardSettings",
    "Settings",
    "SlurmSettings",
    "StopActionSettings",
    "StoreSettings",
    "TrustSettings",
    "known_keys",
    "load_settings",
    "make_preempt",
    "make_priorities",
    "make_rules",
    "settings_source",
]
