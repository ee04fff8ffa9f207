# make demo    make a real module faster, on whatever device is here (about two minutes, first installation aside)
# make test    everything that runs without a GPU, end-to-end tests included (with CI=true half of these, in turn)
# make attacks the whole corpus of attacks on verdicts, with a naive harness that falls for each
# make check   format, lint, types, layers, unit tests
# make static  format, lint and types only
# make lint    format and lint only: what CI runs before `make test`, which types there as one of the tests
# make format  rewrite the files as `make check` wants them
#
# PYTHON=python3.12 chooses the interpreter, VENV=path the environment, DEMO_TASK=name the demonstration.

PYTHON ?= python3
VENV ?= .venv
DEMO_TASK ?= diagonal_matmul
DEMO_BUDGET ?= 60s
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# One thread: what is timed runs in processes of its own, and the tests themselves would only fight for the cores.
# Compiled files are kept: each process of a test would else compile what it imports, the tests themselves included.
PYTEST := env -u PYTHONDONTWRITEBYTECODE OMP_NUM_THREADS=1 $(BIN)/python -m pytest
# Tests run side by side, each on cores of its own, since a judge's threads suffer from whoever else works on theirs.
BESIDE := $(PYTEST) tests -n auto --dist worksteal --own-cores
# Only the files that have such tests: importing all of them takes as long as ten of these tests.
ALONE = $(shell grep -rlE 'mark\.(alone|gpu)\b' tests --include='test_*.py')
MARK := $(shell date +%s)

.PHONY: venv demo test attacks lint static check format clean
.DEFAULT_GOAL := demo

venv: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml constraints.txt tools/make_venv.sh
	@sh tools/make_venv.sh "$(PYTHON)" "$(VENV)"
	@touch $@

$(VENV)/.ready-dev: $(VENV)/.ready
	@echo "installing what tests and checks need"
	@$(PIP) install --quiet --no-compile -e '.[dev]'  # most of transformers is imported by nobody
	@test -x $(BIN)/ruff || $(PIP) install --quiet --ignore-installed --no-deps ruff  # one outside has no script in here
	@touch $@

demo: venv
	@mkdir -p build/demo
	@CUDA_L1_ARCHIVE="$${CUDA_L1_ARCHIVE:-build/demo/archive.sqlite}" \
		$(BIN)/cuda-l1 optimize $(DEMO_TASK) --budget $(DEMO_BUDGET) --out build/demo/$(DEMO_TASK)_optimized.py

test: $(VENV)/.ready-dev
	@$(BESIDE) -m "not alone and not gpu and not slow"
	@$(PYTEST) $(ALONE) -m "(alone or gpu) and not slow"
	@echo "make test: everything passed in $$(( $$(date +%s) - $(MARK) )) s"

attacks: $(VENV)/.ready-dev
	@$(PYTEST) tests/attacks -m "slow or not slow"

lint: $(VENV)/.ready-dev
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .

static: lint
	@$(BIN)/python -m mypy

check: static
	@$(BESIDE) -m "not e2e and not alone and not gpu and not slow"
	@$(BIN)/python benchmarks/gpu_ledger.py show
	@echo "make check: everything passed in $$(( $$(date +%s) - $(MARK) )) s"

format: $(VENV)/.ready-dev
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

clean:
	rm -rf build dist *.egg-info src/*.egg-info
