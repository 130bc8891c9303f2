# make demo and make test do all the set-up they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup demo test browser lint types contract bench clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $(STAMP)

demo: $(STAMP)
	$(BIN)/armwise demo

test: $(STAMP)
	$(BIN)/python -m pytest -n 2

# Chromium and its driver from the system's packages, for the tests in tests/browser.
browser:
	command -v chromium > /dev/null && command -v chromedriver > /dev/null || { \
	apt-get update -qq && \
	apt-get install -qq --yes --no-install-recommends chromium chromium-driver; }

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

contract: $(STAMP)
	$(BIN)/lint-imports

bench: $(STAMP)
	$(BIN)/armwise bench all

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
