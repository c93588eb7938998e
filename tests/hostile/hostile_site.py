"""A site whose users wrote what acts into everything that is theirs: a store, settings, and programs that lie."""

import json
from dataclasses import replace
from pathlib import Path

from evalstopd.core.caps import BreakerTurn, Turn, account_scope
from evalstopd.core.credit import Credit
from evalstopd.core.intent import Intent, State, WouldBeStop
from evalstopd.core.model import Ending, JobKey, Life, Mode, Rung
from evalstopd.core.watch import EarlyWarning, PinState, Remark, Terms, Watch
from evalstopd.ports import Changes
from evalstopd.store import migrate
from evalstopd.store.sql import SqlStore
from tests.contracts import store_builders as make
from tests.hostile.texts import ALL, HOSTILE

MARKUP = f"{HOSTILE['markup']} {ALL}"
LYING = """\
#!/bin/sh
printf '\\033[31m[red]x[/red]\\r\\n=cmd|\\302\\205<script>\\377 Access/permission denied\\n' >&2
printf '\\033[2J[red]x[/red]|\\377\\n'
exit 1
"""


def job(job_id: str) -> JobKey:
    return make.key(job_id, cluster="c", submitted_s=100)


def watch(job_id: str, **changes: object) -> Watch:
    """Return a watched job all of whose texts are hostile."""
    made = Watch(
        job(job_id), Life(0, 100), 101.0, Terms(Rung.WARN, "k-declines:k=2", MARKUP, Mode.MAX, dataset=MARKUP),
        user=MARKUP, dataset_now=MARKUP,
        account=MARKUP, partition=MARKUP, name=MARKUP, nodes=(MARKUP,), gpus=8, started_s=100.0, run_id=MARKUP,
        output_dir=MARKUP, evals=4, declines=1, last_step=40, last_score=0.6, best_step=20, best_score=0.8,
    )  # fmt: skip
    return replace(made, **changes)  # type: ignore[arg-type]


def early() -> EarlyWarning:
    return EarlyWarning(0, 100, 120.0, 30, 1, 2, 20, Rung.WARN, MARKUP, MARKUP, "max", failed=MARKUP)


def stop(job_id: str, **changes: object) -> Intent:
    evidence = make.evidence(
        metric=MARKUP, run_id=MARKUP, reason=MARKUP, rule=MARKUP, proof=MARKUP, version=MARKUP, settings_hash=MARKUP,
        dataset=MARKUP,
    )  # fmt: skip
    made = Intent(
        job(job_id), Life(0, 100), Rung.ENFORCE, evidence, created_s=150.0, not_before_s=150.0, note=MARKUP,
        kept_path=f"/{MARKUP}", nodes=(MARKUP,), gpus=8, user=MARKUP, account=MARKUP, telling=MARKUP,
        ending=Ending(MARKUP, 200.0, MARKUP, MARKUP), handed_to=(MARKUP,),
    )  # fmt: skip
    return replace(made, **changes)  # type: ignore[arg-type]


def fill(url: str) -> None:
    """Write a whole book of hostile texts."""
    store = SqlStore(url)
    done, given_up = stop("7"), stop("8", evidence=make.evidence(metric=MARKUP, reason=MARKUP, dataset=MARKUP))
    booked = WouldBeStop(job("9"), Life(0, 100), 150.0, done.evidence)
    watches = (watch("7", early=early()), watch("8"), watch("9", ending=Ending(MARKUP, 190.0)))
    points = tuple(
        (each.key, make.point(10 * number, score, metric=MARKUP, dataset=MARKUP, arrived_s=140.0, run_id=MARKUP))
        for each in watches
        for number, score in enumerate((0.1, 0.30000000000000004, 1e-320, -0.0), 1)
    )
    turn = BreakerTurn("c", account_scope(MARKUP), Turn.TRIPPED, 160.0, 4e9, MARKUP, MARKUP)
    store.record(
        Changes(
            watches=watches, points=points, intents=(done, given_up), would_be=(booked,), breakers=(turn,),
            events=tuple(make.event(each, text=MARKUP) for each in (done, given_up)),
            pins=(make.pin(done.key, 20, state=PinState.PUBLISHED, path=f"/{MARKUP}", why=MARKUP, manifest=MARKUP),),
            remarks=(Remark(done.key.text, MARKUP, MARKUP, 110.0), Remark(MARKUP, "enforce-override", MARKUP, 111.0),
                     Remark("site", "enforce-override", MARKUP, 112.0)),
            credits=(Credit(done.id, done.key, MARKUP, MARKUP, 1.5, 210.0, MARKUP),),
        )
    )  # fmt: skip
    for state in (State.WARNED, State.PROMOTED, State.CANCELLED, State.CONFIRMED):
        done = replace(done, state=state)
        store.record(Changes(intents=(done,)))
    store.record(Changes(intents=(replace(given_up, state=State.ABANDONED),)))
    store.close()


def build(folder: Path, tracker: str) -> Path:
    """Make the site below a folder and return its settings file; a hostile tracker answers at `tracker`."""
    url = f"sqlite:///{folder}/store.db"
    migrate.upgrade(url)
    fill(url)
    programs = folder / "bin"
    programs.mkdir()
    for name in ("squeue", "sacct", "scontrol", "scancel", "sacctmgr"):
        (programs / name).write_text(LYING)
        (programs / name).chmod(0o755)
    curves = folder / f"{HOSTILE['esc'].replace('/', '-')}[red].jsonl"
    curves.write_text("\n".join(json.dumps(each) for each in _curves()))
    broken = folder / f"\x1b[31m[red]\r\n{HOSTILE['formula'].replace('/', '-')}.jsonl"
    broken.write_text("\x1b[2J{")
    config = folder / "evalstopd.toml"
    config.write_text(
        f'[store]\nurl = "{url}"\n[slurm]\npath = "{programs}"\n[mlflow]\ntracking_uri = "{tracker}"\n'
        f'[keeper]\nsocket = "{folder}/keeper.sock"\n[daemon]\nkill_switch = "{folder}/STOP"\n'
        '[rules]\nrung = "observe"\nmetric = "score"\nmode = "max"\n'
    )
    return config


def _curves() -> list[dict[str, object]]:
    shape = {"steps": list(range(1, 9)), "values": [0.1, 0.4, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3]}
    texts = (MARKUP, *HOSTILE.values())
    return [
        {"id": text.encode("utf-8", "replace").decode(), "family": text.encode("utf-8", "replace").decode(), **shape}
        for text in texts
    ]
