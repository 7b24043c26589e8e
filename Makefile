# Two commands do all set-up from a bare checkout: `make demo` and `make test`.
PYTHON ?= python3
CONSTRAINTS ?= constraints.txt
BIN := .venv/bin

# uv, where it is there, installs in seconds; `make UV= demo` does without. Without a GPU, `auto` takes the
# torch for CPUs (0.2 GB) and not the usual one, which brings CUDA (several GB); `make TORCH= demo` leaves the
# choice to uv's own settings.
UV ?= $(shell command -v uv 2>/dev/null)
TORCH ?= --torch-backend=auto

# $(call install,WHAT): into .venv, by uv, and by pip where uv is missing or cannot.
define install
	@if [ -n "$(UV)" ] && $(UV) venv -q --allow-existing --python $(PYTHON) .venv && $(UV) pip install -q \
	  --python $(BIN)/python $(TORCH) --constraint $(CONSTRAINTS) --editable '$(1)'; then :; else \
	  $(PYTHON) -m venv .venv && $(BIN)/python -m pip install -qq --constraint $(CONSTRAINTS) --editable '$(1)'; fi
endef

.PHONY: setup demo test test-slow papers lint types layers docs format check audit clean

setup: .venv/.done
.venv/.done: .venv/.demo-done
	$(call install,.[dev])
	@touch $@

# The demo needs the package and its page alone; whatever else needs more adds it to the same folder.
.venv/.demo-done: pyproject.toml $(CONSTRAINTS)
	$(call install,.[report])
	@touch $@

demo: .venv/.demo-done
	$(BIN)/taskmix demo

# Tests start hundreds of processes: where they may not keep what they compiled of our files (and of packages,
# which uv leaves uncompiled), each of them compiles it again.
export PYTHONDONTWRITEBYTECODE :=

# One torch thread a process and one process a core: threads within a run lose on few cores. Each process
# begins with one half of the tests, so that what a file's tests share is made once.
test: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal --durations 10 -m 'not slow and not paper'

test-slow: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -m 'slow or paper' --timeout 3600

# Small versions of the published experiments that need neither data nor a GPU.
papers: setup
	$(BIN)/python -m papers bandit --quick
	$(BIN)/python -m papers transfer-theory --quick
	$(BIN)/python -m papers sequences --quick --out build/papers/sequences-draws

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: setup
	$(BIN)/mypy

layers: setup
	$(BIN)/lint-imports

# Into build/site; a broken link or anchor is an error.
docs: setup
	$(BIN)/python docs/site/build.py

check: lint types layers docs test

# Known weaknesses of the pinned packages. It asks PyPI, and lists what it could learn nothing about.
audit: .benchmarks/audit/.done
	.benchmarks/audit/bin/pip-audit --requirement $(CONSTRAINTS) --no-deps --disable-pip
.benchmarks/audit/.done:
	$(PYTHON) -m venv .benchmarks/audit
	.benchmarks/audit/bin/pip install -qq pip-audit
	@touch $@

clean:
	rm -rf .venv .mypy_cache .ruff_cache .import_linter_cache
