"""Bounded harm: how many stops may come in an hour, and the breakers that fall back to observe."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from heapq import heapify, heappop, heapreplace

from evalstopd.core.model import JobKey, Rung

WINDOW_S = 3600.0
SITE = "site"
_ACCOUNT = "account:"
_USER = "user:"


@dataclass(frozen=True, slots=True)
class Caps:
    """The site's limits, all within an hour.

    At most `stops` jobs are ended, `stops_per_account` of one account, and jobs that hold `gpu_share` of the GPUs of
    all running jobs; one stop may always go where none went in that hour. At `breaker_decisions` jobs of an account
    decided on its breaker trips, or that of the owner with most of them there; the site's at `breaker_accounts`
    accounts in which different owners tripped one; each holds for `hold_s` seconds.
    """

    stops: int = 20
    stops_per_account: int = 5
    gpu_share: float = 0.25
    breaker_decisions: int = 10
    breaker_accounts: int = 3
    hold_s: float = 86400.0


USUAL = Caps()
"""The limits of a site that sets none."""
_MANY = 10**9
UNLIMITED = Caps(_MANY, _MANY, math.inf, _MANY, _MANY)
"""No limits: for simulations of the bare rules."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A stop that was decided, or would have been: `acted_s` is when the job was first acted on, if it was.

    `wished` tells that only its owner's word kept it at a would-be stop: it risked nothing, so no breaker counts it.
    `rung` is how far it could go. Times in seconds since the epoch.
    """

    key: JobKey
    account: str
    gpus: int
    at_s: float
    acted_s: float | None = None
    wished: bool = False
    rung: Rung = Rung.ENFORCE

    def risks(self, site: Rung) -> bool:
        """Tell whether it risked what the site's own rung does: a warning is no risk to a site that stops jobs."""
        return not self.wished and (self.rung is Rung.ENFORCE or site is not Rung.ENFORCE)


class Turn(StrEnum):
    """What happened to a breaker."""

    TRIPPED = "tripped"
    RESET = "reset"


@dataclass(frozen=True, slots=True)
class BreakerTurn:
    """One line of a breaker's history; a trip holds until `until_s`.

    `scope` is `site`, `account:NAME`, or `user:UID@NAME` for one owner's jobs in an account.
    """

    cluster: str
    scope: str
    turn: Turn
    at_s: float
    until_s: float
    text: str
    by: str = "evalstopd"


def account_scope(account: str) -> str:
    """Return the name of an account's breaker."""
    return _ACCOUNT + account


def owner_scope(uid: int, account: str) -> str:
    """Return the name of the breaker that holds one owner's jobs in an account."""
    return f"{_USER}{uid}@{account}"


def holds_one_owner(scope: str) -> bool:
    """Tell whether a breaker is one owner's, not an account's or the site's."""
    return scope.startswith(_USER)


def holding(turns: Iterable[BreakerTurn], now_s: float) -> Mapping[str, BreakerTurn]:
    """Return the breakers that hold now, by scope; `turns` has the last turn of each."""
    return {each.scope: each for each in turns if each.turn is Turn.TRIPPED and now_s < each.until_s}


def held_by(account: str, uid: int, held: Mapping[str, BreakerTurn]) -> BreakerTurn | None:
    """Return the breaker that holds an owner's jobs in an account on the observe rung, the site's first."""
    return held.get(SITE) or held.get(account_scope(account)) or held.get(owner_scope(uid, account))


def trips(
    cluster: str,
    decisions: Sequence[Decision],
    turns: Sequence[BreakerTurn],
    caps: Caps,
    now_s: float,
    site: Rung = Rung.ENFORCE,
) -> tuple[BreakerTurn, ...]:
    """Return the breakers that trip now: owners' and accounts' first, so that one account's flood never trips the site.

    Only decisions of the last hour count that came after the breaker's last turn, each job once, and none that only
    its owner's word kept at observe; nor, where the `site` enforces, any that could not stop its job: falls that
    anybody can log on an open server must not switch the daemon off. Jobs that were decided on before an admin's reset
    are seen to, and never count again.
    """
    counted = [each for each in decisions if each.risks(site)]
    of_accounts = _recent(counted, turns, now_s)
    of_owners = _recent(counted, turns, now_s, own=True)
    held = holding(turns, now_s)
    fresh = tuple(
        BreakerTurn(cluster, scope, Turn.TRIPPED, now_s, now_s + caps.hold_s, text)
        for account, owners in sorted(of_accounts.items())
        if account_scope(account) not in held
        for scope, text in _tripped(account, owners, of_owners.get(account, {}), caps.breaker_decisions)
        if scope not in held
    )
    scopes = (*held, *(each.scope for each in fresh))
    return (*fresh, *_site_trip(cluster, scopes, counted, held, caps, now_s)) if fresh else ()


_Owners = Mapping[int, set[JobKey]]


def _tripped(account: str, owners: _Owners, anew: _Owners, most: int) -> Iterable[tuple[str, str]]:
    """Yield the account's breaker where several owners have part in its decisions, else those of single owners.

    Half of `most` must be of others than the one with most of them: nobody's flood, even beside a few honest stops,
    holds his colleagues. `anew` are the decisions after each owner's turn.
    """
    others = _jobs(owners) - len(owners[_chief(owners)])
    if _jobs(owners) >= most and 2 * others >= most:
        yield account_scope(account), _account_text(owners)
        return
    for uid, jobs in sorted(anew.items()):
        if len(jobs) >= most:
            yield owner_scope(uid, account), _owner_text(len(jobs))


def _site_trip(
    cluster: str,
    scopes: Iterable[str],
    decisions: Sequence[Decision],
    held: Mapping[str, BreakerTurn],
    caps: Caps,
    now_s: float,
) -> tuple[BreakerTurn, ...]:
    """Count each account with a breaker that holds for one owner: nobody trips the site alone."""
    by_account = _owners(each for each in decisions if each.at_s > now_s - WINDOW_S - caps.hold_s)
    chiefs = set(_trippers(scopes, by_account).values())
    if SITE in held or len(chiefs) < caps.breaker_accounts:
        return ()
    text = f"breakers hold in {len(chiefs)} accounts, tripped by as many owners: only observing everywhere"
    return (BreakerTurn(cluster, SITE, Turn.TRIPPED, now_s, now_s + caps.hold_s, text),)


def _trippers(scopes: Iterable[str], by_account: Mapping[str, _Owners]) -> Mapping[str, int]:
    """Return who tripped breakers, by account: the owner held alone, else the one with most of the decisions."""
    found: dict[str, int] = {}
    for scope in sorted(scopes, reverse=True):
        if holds_one_owner(scope):
            uid, _, account = scope.removeprefix(_USER).partition("@")
            found[account] = int(uid)
        elif (account := scope.removeprefix(_ACCOUNT)) in by_account and scope != SITE:
            found[account] = _chief(by_account[account])
    return found


def _recent(
    decisions: Sequence[Decision], turns: Iterable[BreakerTurn], now_s: float, *, own: bool = False
) -> Mapping[str, _Owners]:
    """Return the jobs that count for accounts' breakers or, `own`, for those of owners, by account and owner."""
    turned = {each.scope: each.at_s for each in turns}
    reset = {each.scope: each.at_s for each in turns if each.turn is Turn.RESET}

    def last(times: Mapping[str, float], each: Decision, *, own: bool) -> float:
        of_owner = times.get(owner_scope(each.key.uid, each.account), 0.0) if own else 0.0
        return max(of_owner, times.get(account_scope(each.account), 0.0))

    seen_to = {each.key for each in decisions if each.at_s <= last(reset, each, own=True)}

    def counts(each: Decision) -> bool:
        since_s = max(now_s - WINDOW_S, last(turned, each, own=own))
        return each.at_s > since_s and each.key not in seen_to

    return _owners(filter(counts, decisions))


def _owners(decisions: Iterable[Decision]) -> Mapping[str, _Owners]:
    """Return the jobs decided on, by account and owner."""
    found: dict[str, dict[int, set[JobKey]]] = defaultdict(lambda: defaultdict(set))
    for each in decisions:
        found[each.account][each.key.uid].add(each.key)
    return found


def _jobs(owners: _Owners) -> int:
    return sum(len(jobs) for jobs in owners.values())


def _chief(owners: _Owners) -> int:
    return max(sorted(owners), key=lambda uid: len(owners[uid]))


def _account_text(owners: _Owners) -> str:
    whose = f"{_jobs(owners)} jobs of one account, of {len(owners)} owners"
    return f"the rule said stop for {whose}, within an hour: its jobs are only observed"


def _owner_text(jobs: int) -> str:
    return (
        f"the rule said stop for {jobs} jobs of one owner in one account within an hour: those jobs are only observed"
    )


@dataclass(frozen=True, slots=True)
class Held:
    """Why a stop waits: the name of what holds it, one word, and the whole reason."""

    by: str
    text: str


def held_back(
    asking: Sequence[Decision], before: Iterable[Decision], running_gpus: int, caps: Caps, now_s: float
) -> Mapping[JobKey, Held]:
    """Return which of these jobs may not be ended in this pass, and why; `asking` are dated by when they were due.

    Who has waited for a whole hour goes first, the longest wait before all: where a cap of the site holds one, it holds
    all after it, so that the hour empties and it goes. Of the others the owner with the fewest stops within the hour
    goes first. `before` are the decisions known; those acted on
    within the last hour count. `running_gpus` are held now.
    """
    acted = [each for each in before if each.acted_s is not None and each.acted_s > now_s - WINDOW_S]
    hour = _Hour(caps, running_gpus + sum(each.gpus for each in acted))
    for each in acted:
        hour.take(each)
    overdue = sorted((each for each in asking if each.at_s <= now_s - WINDOW_S), key=_age)
    held = {each.key: why for each in overdue if (why := hour.serve(each, overdue=True))}
    for each in _by_share([each for each in asking if each.at_s > now_s - WINDOW_S], hour.of_owner):
        if why := hour.serve(each):
            held[each.key] = why
    return held


def _age(each: Decision) -> tuple[float, JobKey]:
    return each.at_s, each.key


def _by_share(asking: Iterable[Decision], had: Mapping[int, int]) -> Iterator[Decision]:
    """Yield decisions of the owner with the fewest stops first, then the oldest; `had` grows as they are let go."""
    line = [(had[each.key.uid], *_age(each), each) for each in asking]
    heapify(line)
    while line:
        stops, *_, each = line[0]
        if stops == had[each.key.uid]:
            heappop(line)
            yield each
        else:
            heapreplace(line, (had[each.key.uid], *_age(each), each))


@dataclass(slots=True)
class _Hour:
    """What was let go within the hour, and who keeps the rest of it for himself."""

    caps: Caps
    all_gpus: int
    stops: int = 0
    gpus: int = 0
    of_account: Counter[str] = field(default_factory=Counter)
    of_owner: Counter[int] = field(default_factory=Counter)
    kept: bool = False

    def take(self, each: Decision) -> None:
        """Count a stop."""
        self.stops, self.gpus = self.stops + 1, self.gpus + each.gpus
        self.of_account[each.account] += 1
        self.of_owner[each.key.uid] += 1

    def serve(self, each: Decision, *, overdue: bool = False) -> Held | None:
        """Count a stop and return None, or return why it waits."""
        why = Held("turn", "a stop that has waited for a whole hour goes before it") if self.kept else self._over(each)
        if why is None:
            self.take(each)
        self.kept = self.kept or (overdue and why is not None and why.by != "account")
        return why

    def _over(self, each: Decision) -> Held | None:
        """Return which cap one more stop would pass."""
        caps, of_account = self.caps, self.of_account[each.account]
        if self.stops >= caps.stops:
            return Held("site", f"{self.stops} jobs were stopped within the hour, the site's cap is {caps.stops}")
        if of_account >= caps.stops_per_account:
            cap = f"the cap is {caps.stops_per_account}"
            return Held("account", f"{of_account} jobs of its account were stopped within the hour, {cap}")
        if self.stops and self.gpus + each.gpus > caps.gpu_share * self.all_gpus:
            more = f"{each.gpus} more would pass {caps.gpu_share:.0%} of all in use"
            return Held("gpus", f"{self.gpus} GPUs were freed within the hour; {more}")
        return None
