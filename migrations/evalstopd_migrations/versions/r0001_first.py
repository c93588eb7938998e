"""The first tables. Written out, not taken from the program: what a revision does must never change."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_APPEND_ONLY = {
    "intent_events": ("intent_id", "seq"),
    "would_be_stops": ("job", "restarts", "submitted_s"),
    "remarks": ("id",),
    "links": ("seq",),
    "credits": ("intent_id",),
    "bindings": ("id",),
    "breakers": ("id",),
}


def upgrade() -> None:
    """Create the tables, then the triggers that keep what is sealed by the chain append-only."""
    _jobs()
    _watches()
    _points()
    _pins()
    _intents()
    _intent_events()
    _credits()
    _would_be_stops()
    _bindings()
    _remarks()
    _chain()
    _breakers()
    _shifts()
    _leases()
    _pulses()
    _habits()
    _preemptions()
    if op.get_context().dialect.name == "postgresql":
        _guard_on_postgresql()
    else:
        _guard_on_sqlite()


def _text(name: str, *, null: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=null)


def _word(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.String(16), nullable=False)


def _whole(name: str, *, null: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=null, autoincrement=False)


def _time(name: str, *, null: bool = False) -> sa.Column[float]:
    return sa.Column(name, sa.Double(), nullable=null)


def _flag(name: str) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean(), nullable=False)


def _of_job() -> sa.Column[str]:
    return sa.Column("job", sa.Text(), sa.ForeignKey("jobs.job"), nullable=False)


def _life() -> tuple[sa.Column[int], sa.Column[int]]:
    return _whole("restarts"), _whole("submitted_s")


def _jobs() -> None:
    op.create_table(
        "jobs",
        _text("job"),
        _text("cluster"),
        _text("job_id"),
        _whole("uid"),
        _whole("submitted_s"),
        sa.PrimaryKeyConstraint("job"),
        sa.UniqueConstraint("cluster", "job_id", "uid", "submitted_s", name="uq_jobs_key"),
    )
    op.create_index("ix_jobs_job_id", "jobs", ["job_id"])
    op.create_table(
        "lives",
        _of_job(),
        *_life(),
        _time("started_s", null=True),
        _whole("gpus"),
        _text("nodes"),
        _text("ending", null=True),
        _time("limit_end_s", null=True),
        *(_text(name) for name in ("user", "account", "partition", "name")),
        sa.PrimaryKeyConstraint("job", "restarts", "submitted_s"),
    )


def _watches() -> None:
    op.create_table(
        "watches",
        _text("job"),
        *_life(),
        _flag("over"),
        _time("first_s"),
        _word("rung"),
        _text("rule"),
        _text("metric"),
        _word("mode"),
        _flag("trusted"),
        _flag("logged_models"),
        _time("notice_s"),
        _word("action"),
        _whole("items"),
        _text("dataset"),
        _text("run_id", null=True),
        _flag("two_way"),
        _text("proof"),
        _text("output_dir", null=True),
        _whole("evals"),
        _whole("declines"),
        _whole("last_step", null=True),
        _text("last_score", null=True),
        _whole("last_life"),
        _whole("best_step", null=True),
        _text("best_score", null=True),
        _whole("best_life"),
        _whole("read_life", null=True),
        _word("rung_now"),
        _text("rule_now"),
        _text("metric_now"),
        _word("mode_now"),
        _text("dataset_now"),
        _text("reads"),
        _time("vanished_s", null=True),
        _text("early", null=True),
        sa.PrimaryKeyConstraint("job"),
        sa.ForeignKeyConstraint(
            ["job", "restarts", "submitted_s"], ["lives.job", "lives.restarts", "lives.submitted_s"]
        ),
    )
    op.create_index("ix_watches_over", "watches", ["over"])
    op.create_index("ix_watches_first_s", "watches", ["first_s"])


def _points() -> None:
    op.create_table(
        "points",
        _of_job(),
        _whole("life"),
        _text("run_id"),
        _whole("step"),
        _whole("timestamp_ms"),
        _text("value"),
        _text("metric"),
        _text("dataset"),
        _time("arrived_s"),
        _text("stderr", null=True),
        _whole("batch"),
        sa.PrimaryKeyConstraint("job", "life", "run_id", "step", "timestamp_ms", "value", "metric", "dataset"),
        sqlite_with_rowid=False,
    )


def _pins() -> None:
    op.create_table(
        "pins",
        _of_job(),
        _whole("step"),
        _text("score"),
        _word("state"),
        _time("wanted_s"),
        _whole("restarts"),
        _time("since_s"),
        _whole("tries"),
        _text("path"),
        _whole("files"),
        _whole("size"),
        _text("manifest"),
        _text("why"),
        sa.PrimaryKeyConstraint("job", "step"),
    )


def _intents() -> None:
    op.create_table(
        "intents",
        _text("id"),
        _of_job(),
        *_life(),
        _whole("trigger_step"),
        _word("rung"),
        _text("evidence"),
        _time("created_s"),
        _time("not_before_s"),
        _word("state"),
        _time("changed_s"),
        _whole("cancel_tries"),
        _whole("events"),
        _text("telling"),
        _text("signal", null=True),
        *(_text(name) for name in ("note", "kept_path", "user", "nodes")),
        _whole("gpus"),
        _text("ending", null=True),
        _text("handed_to"),
        _time("told_s", null=True),
        _time("acted_s", null=True),
        _text("account"),
        _word("action"),
        _time("kept_s", null=True),
        _text("held_life", null=True),
        _text("model"),
        _time("asked_s", null=True),
        _whole("unsure"),
        _whole("refused"),
        sa.PrimaryKeyConstraint("id"),
    )
    for column in ("job", "state", "changed_s", "created_s", "acted_s"):
        op.create_index(f"ix_intents_{column}", "intents", [column])


def _intent_events() -> None:
    op.create_table(
        "intent_events",
        sa.Column("intent_id", sa.Text(), sa.ForeignKey("intents.id"), nullable=False),
        _whole("seq"),
        _time("at_s"),
        _text("kind"),
        _text("text"),
        sa.PrimaryKeyConstraint("intent_id", "seq"),
    )


def _credits() -> None:
    op.create_table(
        "credits",
        sa.Column("intent_id", sa.Text(), sa.ForeignKey("intents.id"), nullable=False),
        _of_job(),
        _text("user"),
        _text("account"),
        sa.Column("gpu_hours", sa.Double(), nullable=False),
        _time("at_s"),
        _text("how"),
        sa.PrimaryKeyConstraint("intent_id"),
    )
    op.create_index("ix_credits_job", "credits", ["job"])


def _would_be_stops() -> None:
    op.create_table(
        "would_be_stops",
        _of_job(),
        *_life(),
        _time("at_s"),
        _text("evidence"),
        _flag("wished"),
        sa.PrimaryKeyConstraint("job", "restarts", "submitted_s"),
    )
    op.create_index("ix_would_be_stops_at_s", "would_be_stops", ["at_s"])


def _bindings() -> None:
    op.create_table(
        "bindings",
        sa.Column("id", _SERIAL, primary_key=True),
        _of_job(),
        _text("run_id"),
        _text("proof"),
        _flag("two_way"),
        _time("since_s"),
    )
    op.create_index("ix_bindings_run_id", "bindings", ["run_id", "id"])


def _remarks() -> None:
    op.create_table(
        "remarks",
        sa.Column("id", _SERIAL, primary_key=True),
        _text("subject"),
        _text("code"),
        _text("text"),
        _time("at_s"),
    )
    op.create_index("ix_remarks_subject", "remarks", ["subject", "code"])


def _chain() -> None:
    op.create_table(
        "links",
        sa.Column("seq", _SERIAL, primary_key=True),
        *(_text(name) for name in ("kind", "ref", "digest", "hash")),
    )
    op.create_index("ix_links_ref", "links", ["ref", "kind"])
    op.create_table("chain_head", _whole("id"), _whole("length"), _text("hash"), sa.PrimaryKeyConstraint("id"))


def _breakers() -> None:
    op.create_table(
        "breakers",
        sa.Column("id", _SERIAL, primary_key=True),
        _text("cluster"),
        _text("scope"),
        _word("turn"),
        _time("at_s"),
        _time("until_s"),
        _text("text"),
        _text("by"),
    )
    op.create_index("ix_breakers_scope", "breakers", ["cluster", "scope", "id"])


def _shifts() -> None:
    op.create_table(
        "shifts",
        _text("cluster"),
        _text("job_id"),
        _whole("uid"),
        _whole("submitted_s"),
        _word("lever"),
        *(_whole(name) for name in ("nice", "natural", "asked", "before")),
        _time("asked_s"),
        _whole("tries"),
        _word("state"),
        _text("why"),
        sa.PrimaryKeyConstraint("cluster", "job_id", "uid", "submitted_s"),
    )


def _pulses() -> None:
    op.create_table(
        "pulses",
        _text("name"),
        _whole("pid"),
        _time("at_s"),
        _time("good_s", null=True),
        _flag("leads"),
        *(_text(name) for name in ("version", "digest", "summary", "holder")),
        _flag("ended"),
        sa.PrimaryKeyConstraint("name"),
    )


def _preemptions() -> None:
    op.create_table(
        "preemptions",
        _of_job(),
        *_life(),
        _text("heir"),
        _whole("gpus"),
        _time("at_s"),
        _time("saved_s"),
        _text("reason"),
        _text("user"),
        _whole("tries"),
        _word("state"),
        _text("note"),
        sa.PrimaryKeyConstraint("job", "restarts", "submitted_s"),
    )
    op.create_index("ix_preemptions_at_s", "preemptions", ["at_s"])


def _habits() -> None:
    op.create_table(
        "habits",
        *(_text(name) for name in ("cluster", "user", "account", "name")),
        _time("at_s"),
        _text("ended"),
        _text("cut"),
        sa.PrimaryKeyConstraint("cluster", "user", "account", "name"),
    )
    op.create_table("histories", _text("cluster"), _time("read_s"), sa.PrimaryKeyConstraint("cluster"))


def _leases() -> None:
    op.create_table(
        "leases",
        _text("name"),
        _text("holder"),
        _whole("epoch"),
        _time("until_s"),
        _text("cluster"),
        sa.PrimaryKeyConstraint("name"),
    )


def _guard_on_sqlite() -> None:
    for table, key in _APPEND_ONLY.items():
        abort = f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
        for verb in ("UPDATE", "DELETE"):
            op.execute(f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} {abort}")
        # INSERT OR REPLACE removes a row without telling the trigger on DELETE.
        same = " AND ".join(f"{column} = NEW.{column}" for column in key)
        there = f"EXISTS (SELECT 1 FROM {table} WHERE {same})"  # noqa: S608  names of this file's own
        op.execute(f"CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table} WHEN {there} {abort}")


def _guard_on_postgresql() -> None:
    op.execute(
        "CREATE FUNCTION refuse_to_change() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME; END $$"
    )
    for table in _APPEND_ONLY:
        when = f"BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} FOR EACH STATEMENT"
        op.execute(f"CREATE TRIGGER {table}_append_only {when} EXECUTE FUNCTION refuse_to_change()")
