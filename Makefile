# The two commands of the README, and what they are made of.
BASE ?= /var/tmp/evalstopd-$(shell id -un)
PY = $(BASE)/venv/bin/python
CORES = $(shell nproc)
# Many tests wait for processes and servers more than they work: so more workers than cores.
WORKERS ?= $(shell expr 2 \* $(CORES))
# Those on real parts wait most of all: for paces, notices, and Slurm's whole seconds.
REAL_WORKERS ?= $(shell expr 3 \* $(WORKERS) / 2)
# Where it is forbidden, each worker and each command of ours compiles everything anew.
unexport PYTHONDONTWRITEBYTECODE
# Its tests are skipped, and say so, where it could not be made.
export PYTHON_OF_MLFLOW2 = $(BASE)/venv-mlflow2/bin/python
PATHS = PYTHONPATH=sim:migrations:examples MYPYPATH=sim:migrations

.PHONY: help demo demo-slurm demo-compare test lint fast real trainers env bench bench-mlflow bench-cluster bench-queue bench-priorities bench-orders bench-goals bench-estimates bench-filtered bench-label curves bench-curves nightly mutation soak clean mlflow2 mlflow2-venv trained timed compiled

help:
	@echo "make demo        the main job: real MLflow, store and files, an emulated cluster (any Linux; a minute)"
	@echo "make demo-slurm  the main job on real parts: Slurm, MLflow, training (Debian, root; a few minutes)"
	@echo "make demo-compare  the simulator's word against a real cluster: one workload, the daemon off and on (12 minutes)"
	@echo "make test       everything: linters, types, fast tests, tests on a real Slurm cluster and MLflow server"
	@echo "make mlflow2    of these: the contracts over a server of MLflow 2, in an environment of its own"
	@echo "make trainers   of these: Hugging Face, TRL and Lightning as real jobs (installs them: 2 GB)"

demo:
	@tools/environment.sh $(BASE) demo
	@cd examples && $(PY) -m demo.embedded --directory $(BASE)/demo-embedded $(DEMO)

demo-slurm:
	@[ "$$(id -u)" = 0 ] && [ -e /etc/debian_version ] || { echo "make demo-slurm needs Debian 12 or 13 and root: it starts a real Slurm cluster that runs jobs of several users" >&2; exit 2; }
	@tools/environment.sh $(BASE) demo,training
	@cd examples && $(PY) -m demo --directory $(BASE)/demo $(DEMO)

demo-compare:
	@[ "$$(id -u)" = 0 ] && [ -e /etc/debian_version ] || { echo "make demo-compare needs Debian 12 or 13 and root: it starts a real Slurm cluster that runs jobs of several users" >&2; exit 2; }
	@tools/environment.sh $(BASE) demo,plots
	@cd examples && $(PY) -m demo.compare --directory $(BASE)/demo-compare $(DEMO)

env:
	@tools/environment.sh $(BASE) test,lint

# One after the other: side by side on two cores, what has to answer in time was late.
test: env
	@tools/test-packages.sh
	$(MAKE) --no-print-directory -j2 lint compiled
	$(MAKE) --no-print-directory fast timed mlflow2-venv real trained

# In a fresh clone each worker would do it for itself, at the same time. What is wrong is told by who runs the tests.
compiled:
	@$(PY) -m pytest -q --collect-only >/dev/null 2>&1 || true

lint:
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PATHS) $(PY) -m mypy
	$(PATHS) $(BASE)/venv/bin/lint-imports

fast:
	$(PY) -m pytest -q -n $(WORKERS) --dist worksteal -m "not slurm and not mlflow and not timed" $(PYTEST)

# Each worker has a cluster and a server; the tests of a file stay together, or of a server (xdist_group).
real:
	$(PY) -m pytest -q -n $(REAL_WORKERS) --dist loadgroup --no-loadscope-reorder \
	  -m "(slurm or mlflow) and not trainers and not timed" $(PYTEST)

timed:
	$(PY) -m pytest -q -n $(CORES) --dist loadfile --no-loadscope-reorder -m timed $(PYTEST)

trainers: env trained

# In an environment of its own above the other one: what it installs (2 GB) is none of the other tests' business.
trained:
	@[ "$$(id -u)" = 0 ] && [ -e /etc/debian_version ] && tools/environment.sh $(BASE) trainers trainers-venv \
	  || echo "TRAINERS NOT TESTED: that needs Debian, root and their libraries, which cannot be installed here" >&2
	python=$(BASE)/trainers-venv/bin/python; [ -x $$python ] || python=$(PY); \
	  $$python -m pytest -q -n $(CORES) --dist loadgroup -m trainers tests/trainers $(PYTEST)

mlflow2: env mlflow2-venv
	$(PY) -m pytest -q tests/adapters/mlflow/test_mlflow2.py $(PYTEST)

# Its last versions name no upper bound for SQLAlchemy, and do not run with 2.1.
mlflow2-venv:
	@[ -x $(BASE)/venv-mlflow2/bin/mlflow ] || { $(PY) -m venv $(BASE)/venv-mlflow2 \
	  && $(BASE)/venv-mlflow2/bin/pip install -qq --disable-pip-version-check "mlflow>=2,<3" "sqlalchemy<2.1"; } \
	  || echo "MLFLOW 2 NOT TESTED: it cannot be installed here" >&2

bench: env
	$(PY) -m bench

bench-mlflow: env
	$(PATHS) $(PY) -m bench.mlflow --runs 2000 $(BENCH)

bench-cluster: env
	$(PATHS) $(PY) -m bench.cluster $(BENCH)

bench-queue: env
	$(PATHS) $(PY) -m bench.queue $(BENCH)

bench-priorities: env
	$(PATHS) $(PY) -m bench.priorities --directory $(BASE)/bench-priorities $(BENCH)

bench-orders: env
	$(PATHS) $(PY) -m bench.orders --directory $(BASE)/bench-orders $(BENCH)

bench-goals: env
	$(PATHS) $(PY) -m bench.goals $(BENCH)

# Trains anew what examples/curves/curves.jsonl holds (twelve minutes of one core): into BASE, never over that file.
curves: env
	$(PATHS) $(PY) -m curves.collect $(BASE)/curves-raw.jsonl $(CURVES)
	$(PATHS) $(PY) -m bench.label $(BASE)/curves-raw.jsonl $(BASE)/curves.jsonl

bench-curves: env
	$(PATHS) $(PY) -m bench.fresh examples/curves/curves.jsonl $(BENCH)

bench-filtered: env
	$(PATHS) $(PY) -m bench.filtered $(BENCH)

bench-label: env
	$(PATHS) $(PY) -m bench.label $(BENCH)

bench-estimates: env
	$(PATHS) $(PY) -m bench.estimates $(BENCH)

# Ten thousand examples for each property: hours.
nightly: env
	$(PY) -m pytest -q -n $(CORES) --dist worksteal -m properties --hypothesis-profile=nightly --timeout=0 $(PYTEST)

mutation:
	@tools/environment.sh $(BASE) mutation
	@tools/mutation.sh $(BASE) $(MUTANTS)

soak: env
	$(PATHS) $(PY) -m bench.soak $(SOAK)

clean:
	rm -rf $(BASE)
