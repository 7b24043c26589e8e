# Two commands do all set-up from a bare checkout: `make demo` and `make test`.
PYTHON ?= python3
CONSTRAINTS ?= constraints.txt
BIN := .venv/bin

.PHONY: setup demo test test-slow lint types layers format check clean

setup: .venv/.done
.venv/.done: pyproject.toml $(CONSTRAINTS)
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -qq --constraint $(CONSTRAINTS) --editable '.[dev]'
	@touch $@

demo: setup
	$(BIN)/taskmix demo

# One torch thread a process and one process a core: threads within a run lose on few cores.
test: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -m 'not slow and not paper'

test-slow: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -m 'slow or paper' --timeout 3600

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

check: lint types layers test

clean:
	rm -rf .venv .mypy_cache .ruff_cache .import_linter_cache
