"""Small worlds for the store's tests: builders with telling defaults, and strategies that go to the edges."""

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from evalstopd.core.binding import Binding
from evalstopd.core.credit import Credit
from evalstopd.core.intent import Evidence, Intent, IntentEvent, State, WouldBeStop
from evalstopd.core.model import Ending, JobKey, Life, Mode, Point, Rung, StopAction
from evalstopd.core.preempt import Preemption, PreemptState
from evalstopd.core.shift import Lever, Shift, ShiftState
from evalstopd.core.watch import EarlyWarning, Pin, PinState, Reads, Remark, Terms, Watch
from evalstopd.core.wishes import Signal

CLUSTER = "alpha"
HOSTILE = "a\x00b\udcff\ud800\\u0041\\\n'\"; DROP TABLE jobs;--\x1b[31m[red]é漢"
ENDED = Ending("CANCELLED", 99.0, "0:15")


def key(job_id: str = "7", *, cluster: str = CLUSTER, uid: int = 1001, submitted_s: int = 1_700_000_000) -> JobKey:
    return JobKey(cluster, job_id, uid, submitted_s)


def life(restarts: int = 0) -> Life:
    return Life(restarts, 1_700_000_000 + restarts)


def watch(of: JobKey | None = None, **changes: Any) -> Watch:
    terms = Terms(Rung.ENFORCE, "k-declines:k=2", "eval/score", Mode.MAX)
    return replace(Watch(of or key(), life(), first_s=10.0, terms=terms), **changes)


def point(step: int = 1, value: float = 0.5, **changes: Any) -> Point:
    return replace(Point("run-1", step, value, timestamp_ms=1000 + step), **changes)


def evidence(trigger_step: int = 40, **changes: Any) -> Evidence:
    made = Evidence(
        rule="k-declines:k=2",
        metric="eval/score",
        mode="max",
        run_id="run-1",
        proof="comment",
        two_way=True,
        steps=(10, 20, 30, trigger_step),
        scores=(0.1, 0.30000000000000004, 1e-320, -0.0),
        trigger_step=trigger_step,
        best_step=20,
        best_score=0.30000000000000004,
        k_before_step=20,
        declines=2,
        reason="two declines in a row",
    )
    return replace(made, **changes)


def intent(of: JobKey | None = None, trigger_step: int = 40, **changes: Any) -> Intent:
    made = Intent(of or key(), life(), Rung.ENFORCE, evidence(trigger_step), created_s=50.0, not_before_s=60.0)
    return replace(made, **changes)


def event(of: Intent, seq: int = 0, **changes: Any) -> IntentEvent:
    return replace(IntentEvent(of.id, seq, 50.0 + seq, "planned", f"line {seq}"), **changes)


def pin(of: JobKey | None = None, step: int = 20, **changes: Any) -> Pin:
    return replace(Pin(of or key(), step, 0.5, PinState.WANTED, wanted_s=11.0), **changes)


def credit(of: Intent, **changes: Any) -> Credit:
    return replace(Credit(of.id, of.key, "alice", "ml", 1.5, 60.0, "it was released"), **changes)


def would_be(of: JobKey | None = None, **changes: Any) -> WouldBeStop:
    return replace(WouldBeStop(of or key(), life(), 50.0, evidence()), **changes)


def binding(of: JobKey | None = None, run_id: str = "run-1", **changes: Any) -> Binding:
    return replace(Binding(of or key(), run_id, "comment", two_way=True, since_s=12.0), **changes)


def remark(subject: str, code: str = "no-run", **changes: Any) -> Remark:
    return replace(Remark(subject, code, "nothing was done", 13.0), **changes)


def shift(of: JobKey | None = None, **changes: Any) -> Shift:
    made = Shift(of or key(), Lever.NICE, nice=0, natural=1000, asked=30, before=0, asked_s=14.0)
    return replace(made, **changes)


whole = st.integers(-(2**63), 2**63 - 1)
texts = st.text(st.characters(exclude_categories=()), max_size=30) | st.just(HOSTILE)
# Times are our own: no NaN, and the sign of zero may go (SQLite stores whole floats as integers).
times = st.floats(allow_nan=False).map(lambda time_s: time_s + 0.0)
scores = st.floats() | st.sampled_from([float("nan"), float("inf"), float("-inf"), 1.7976931348623157e308])
nodes = st.lists(texts, max_size=3).map(tuple)
# A colon parts the fields of a key's text; Slurm allows none in the names of clusters and in job ids.
names = texts.map(lambda text: text.replace(":", ""))
keys = st.builds(JobKey, names, names, whole, whole)
lives = st.builds(Life, whole, whole)
endings = st.none() | st.builds(Ending, texts, st.none() | times, texts, texts)
points = st.builds(Point, texts, whole, scores, whole, whole, times, st.none() | scores, texts, texts)
evidences = st.builds(
    Evidence,
    *[texts] * 5,
    steps=st.lists(whole, max_size=4).map(tuple),
    scores=st.lists(scores, max_size=4).map(tuple),
    trigger_step=whole,
    best_step=whole,
    best_score=scores,
    k_before_step=st.none() | whole,
    declines=whole,
    reason=texts,
    settings_hash=texts,
    version=texts,
    chosen_step=st.none() | whole,
    stderrs=st.lists(st.none() | scores, max_size=4).map(tuple),
    dataset=texts,
)
earlies = st.builds(
    EarlyWarning, whole, whole, times, whole, whole, whole, st.none() | whole, whole, texts, texts, texts, times,
    st.none() | times, texts, dataset=texts,
)  # fmt: skip
watches = st.builds(
    Watch,
    key=keys,
    life=lives,
    first_s=times,
    terms=st.builds(
        Terms,
        st.sampled_from(Rung),
        texts,
        texts,
        st.sampled_from(Mode),
        st.booleans(),
        times,
        st.sampled_from(StopAction),
        dataset=texts,
    ),
    user=texts,
    account=texts,
    partition=texts,
    name=texts,
    gpus=whole,
    nodes=nodes,
    started_s=st.none() | times,
    limit_end_s=st.none() | times,
    run_id=st.none() | texts,
    two_way=st.booleans(),
    output_dir=st.none() | texts,
    evals=whole,
    declines=whole,
    last_step=st.none() | whole,
    last_score=st.none() | scores,
    last_life=whole,
    best_step=st.none() | whole,
    best_score=st.none() | scores,
    reads=st.builds(Reads, st.lists(times, max_size=3).map(tuple), whole, times, st.none() | times),
    dataset_now=texts,
    vanished_s=st.none() | times,
    ending=endings,
    early=st.none() | earlies,
)
intents = st.builds(
    Intent,
    key=keys,
    life=lives,
    rung=st.sampled_from(Rung),
    evidence=evidences,
    created_s=times,
    not_before_s=times,
    state=st.sampled_from(State),
    changed_s=times,
    cancel_tries=whole,
    signal=st.none() | st.builds(Signal, texts, whole),
    note=texts,
    kept_path=texts,
    nodes=nodes,
    gpus=whole,
    ending=endings,
    handed_to=nodes,
    told_s=st.none() | times,
    account=texts,
    action=st.sampled_from(StopAction),
    kept_s=st.none() | times,
    held_life=st.none() | lives,
    asked_s=st.none() | times,
    unsure=whole,
    refused=whole,
)
pins = st.builds(
    Pin, keys, whole, scores, st.sampled_from(PinState), times, whole, times, whole, texts, whole, whole, texts, texts
)
remarks = st.builds(Remark, texts, texts, texts, times)
credits_differ = st.fixed_dictionaries(
    {"user": texts, "account": texts, "gpu_hours": times, "at_s": times, "how": texts}
)
shifts = st.builds(
    Shift, keys, st.sampled_from(Lever), whole, whole, whole, whole, times, whole, st.sampled_from(ShiftState), texts
)
preemptions = st.builds(
    Preemption, keys, lives, texts, whole, times, times, texts, texts, whole, st.sampled_from(PreemptState), texts
)
would_bes = st.builds(WouldBeStop, keys, lives, times, evidences, st.booleans())
