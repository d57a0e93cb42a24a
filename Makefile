# Everything a fresh Linux machine with Python 3.11, make and git needs: `make demo` and `make test`.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
PIP_FLAGS ?=
# PyPI's own torch for Linux brings CUDA along, some gigabytes; here lies the build for processors alone.
CPU_TORCH ?= https://download.pytorch.org/whl/cpu
# A file's tests stay in one process, one arithmetic thread each: two cores are busy with two files, not with waiting.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadfile

.PHONY: install demo test test-full lint clean

install: $(VENV)/installed

$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	command -v nvidia-smi >/dev/null || $(BIN)/python -m pip install --quiet $(PIP_FLAGS) --no-deps --retries 0 --timeout 20 \
		--index-url $(CPU_TORCH) -c constraints.txt torch || echo "not to be had: torch as the usual index has it"
	$(BIN)/python -m pip install --quiet $(PIP_FLAGS) -c constraints.txt -e '.[test]'
	touch $@

demo: install
	$(BIN)/negatoscope demo --into demo

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

test: install lint
	$(PYTEST)

test-full: install lint
	$(PYTEST) -m 'full or not full'

clean:
	rm -rf $(VENV) demo runs build dist
