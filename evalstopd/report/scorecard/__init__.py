"""The observe rung's book: every would-be stop, what the job then did, and whether a rule may get more power."""

from evalstopd.report.scorecard.book import Scorecard, read_scorecard
from evalstopd.report.scorecard.gate import check_enforce, enforce_verdict, override_remark
from evalstopd.report.scorecard.limits import Limit, Limits

__all__ = ["Limit", "Limits", "Scorecard", "check_enforce", "enforce_verdict", "override_remark", "read_scorecard"]
