"""Whether a site may enforce: a passed card for its rule, or a written reason, which goes into the book."""

from collections.abc import Sequence

from evalstopd.core.watch import Remark
from evalstopd.errors import Misconfigured
from evalstopd.report.scorecard.book import OVERRIDE, SITE, Scorecard
from evalstopd.report.scorecard.limits import Verdict


def enforce_verdict(found: Scorecard) -> Verdict:
    """Return whether the site's rule has passed for the enforce rung."""
    return found.cards[0].verdicts[-1]


def check_enforce(found: Scorecard, reason: str) -> str:
    """Return in words why the site may enforce. Raises Misconfigured where it may not."""
    verdict = enforce_verdict(found)
    if verdict.met:
        return f"the scorecard of {found.site_rule} is passed"
    lacks = "; ".join(verdict.missing)
    if not reason.strip():
        raise Misconfigured(
            f'rules.rung = "enforce" needs a passed scorecard of {found.site_rule} ({lacks}), '
            'or the reason to go without: enforce.override = "reason"'
        )
    return f"enforce without a passed scorecard of {found.site_rule} ({lacks}): {reason.strip()}"


def override_remark(found: Scorecard, reason: str, digest: str, now_s: float) -> Sequence[Remark]:
    """Return the line that goes into the book where the reason is needed: one for each digest of the settings."""
    mark = f"settings {digest}: "
    if enforce_verdict(found).met or any(each.text.startswith(mark) for each in found.overrides):
        return ()
    return (Remark(SITE, OVERRIDE, f"{mark}{check_enforce(found, reason)}", now_s),)
