# Everything a fresh Linux machine with Python 3.11, make and git needs: `make demo` and `make test`.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
PIP_FLAGS ?=

.PHONY: install demo test test-full lint benchmarks clean

install: $(VENV)/installed

$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet $(PIP_FLAGS) -c constraints.txt -e '.[test]'
	touch $@

demo: install
	$(BIN)/negatoscope demo --into demo

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

test: install lint
	$(BIN)/python -m pytest

test-full: install lint
	$(BIN)/python -m pytest -m 'full or not full'

clean:
	rm -rf $(VENV) demo runs build dist
