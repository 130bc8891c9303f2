# make demo and make test do all the set-up they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEMO := $(VENV)/.demo
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# pip compiles what it copies, but not a checkout; where Python may not write
# bytecode by itself every start would compile 140 modules again, half a second. Only
# what has changed is compiled.
COMPILE := $(BIN)/python -m compileall -q src papers benchmarks studies

.PHONY: setup demo test test-slow test-all test-drake strangers strangers-quick browser lint types contract bench bench-servo papers docs package clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[dev]'
	$(COMPILE)
	touch $(STAMP) $(DEMO)

# What the demo needs, and no more: it is the first thing people do.
$(DEMO): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[sim]'
	touch $(DEMO)

demo: $(DEMO)
	$(COMPILE)
	$(BIN)/armwise demo

# Twice as many as cores: browsers, installers and interrupted commands mostly wait.
# One BLAS thread each, or they wait for each other.
PYTEST := OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 4 --durations=30

test: $(STAMP)
	$(COMPILE)
	$(PYTEST) -m "not slow"

# What takes long: statistics of many runs, every bad file, wheels.
test-slow: $(STAMP)
	$(PYTEST) -m "slow and not papers"

# Everything, with the reproductions that take minutes.
test-all: $(STAMP)
	$(PYTEST)

# Drake reads what is exported. It is too large to install for every test run; NumPy is
# all that its parsers need.
test-drake: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade \
	--target .venv-drake drake==1.51.1
	PYTHONPATH=.venv-drake $(BIN)/python -m pytest -q tests/simulators/test_drake.py

# Robots that nobody here described, from packages of their files, through every command.
# The packages come without what they depend on: only their descriptions are read.
STRANGERS := .venv-strangers
strangers strangers-quick: $(STAMP)
	$(BIN)/python -m studies.strangers $(if $(findstring quick,$@),--quick) --packages > .strangers.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade \
	--target $(STRANGERS) -r .strangers.txt && rm .strangers.txt
	$(BIN)/python -m studies.strangers $(if $(findstring quick,$@),--quick) --root $(STRANGERS) -o strangers.md

# 20,000 mutants of every reader's files, 1,000 kills, an hour of every adaptive controller.
fuzz: $(STAMP)
	$(BIN)/python -m studies.fuzz
	$(BIN)/python -m studies.kills
	$(BIN)/python -m studies.endurance

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
	$(PIP) -e '.[bench]'
	$(BIN)/armwise bench all

# Servos beside all peers: BAM asks for Python 3.12, so it has an environment of its own.
# Pins of constraints.txt are those of Python 3.11.
BENCH := .venv-bench
PYTHON312 ?= python3.12
bench-servo:
	test -x $(BENCH)/bin/python || $(PYTHON312) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	$(BENCH)/bin/armwise bench servo

# Five classic papers redone, as a site in gallery/; what is finished is kept there.
papers: $(STAMP)
	$(BIN)/armwise papers all -o gallery

# The documents as a site, in site/; a broken link is an error.
docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Wheel and source archive, in dist/.
package: $(STAMP)
	$(BIN)/python -m hatchling build

clean:
	rm -rf $(VENV) $(STRANGERS) $(BENCH) .venv-drake build dist site .pytest_cache .mypy_cache .ruff_cache
