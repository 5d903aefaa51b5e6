# Everything runs in a virtual environment that the targets make themselves; see `make help`.

PYTHON ?= python3
VENV ?= .venv
# The versions of what is installed: files that `make lock` writes.
LOCK ?= requirements
DEMO := build/demo

# A user's settings must not reach into the environment, or Perun that is tested is not the one installed.
unexport PYTHONPATH PYTHONHOME
# pytest rewrites all assertions anew in each of its processes where it may not keep what it made of them.
unexport PYTHONDONTWRITEBYTECODE
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PATH := $(abspath $(VENV))/bin:$(PATH)

PIP := $(VENV)/bin/python -m pip install --quiet --quiet --no-input
# The files are complete, so that pip need not look for what a library needs: of a library that another one asks for
# with an extra it finds the newest release, and then says that this one is not pinned.
LOCKED := --require-hashes --no-deps --requirement
PIP_LOCKED := $(PIP) --no-compile $(LOCKED)
# pip compiles one module after the other, also the tests that libraries bring; some of their files are no valid Python.
COMPILE := $(VENV)/bin/python -m compileall -q -q -j 0 -x '/tests?/' $(VENV)/lib || true
# Folders too: they change when a file is removed.
SOURCES := meson.build pyproject.toml README.md $(wildcard tools/*.py) $(shell find src -not -path '*__pycache__*')

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-pythons test-latest test-oldest lint bench screenshots docs lock clean

help:  ## Show what can be made
	@echo "Perun, a performance version system. Targets:"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-16s %s\n", $$1, $$2 }'

demo: $(VENV)/.installed  ## Measure the history of a small C++ project, find what made it slow, and watch the next commit
	@demo/run.sh $(DEMO)

test: $(VENV)/.tracers $(VENV)/.strange $(VENV)/.installed-test $(VENV)/.chromium  ## Lint, and run all tests but the slow ones
	@$(call checks,-m "not slow")

test-all: $(VENV)/.tracers $(VENV)/.strange $(VENV)/.installed-test $(VENV)/.chromium $(VENV)/.arm64 $(VENV)/.servers $(VENV)/.harnesses $(VENV)/.linters build/harnesses/.made  ## As test, with the slow ones
	@$(call checks,--fresh-processes --hypothesis-profile=thorough)

test-pythons: $(VENV)/.installed-dev  ## Run the unit tests with every Python of this machine, 3.11 to 3.14
	@$(VENV)/bin/nox --session tests -- tests/unit -m "not slow" --quiet --numprocesses=auto

# Other versions than the lock's are chosen anew each time and get an environment of their own. The lowest ones are those
# of the oldest Python: newer Pythons cannot install all of them.
test-latest: $(VENV)/.installed-dev  ## As test, with the newest versions that pyproject.toml allows
	@$(call with_versions,latest,--resolution highest --fork-strategy requires-python,$(PYTHON))

test-oldest: $(VENV)/.installed-dev  ## As test, but for lint, with the lowest versions that pyproject.toml allows
	@$(call with_versions,oldest,--resolution lowest-direct,$(firstword $(PYTHON_OLDEST) $(PYTHON)),LINT=)

PYTHON_OLDEST = $(shell tools/pythons.sh 3.11 | cut -d' ' -f2)
# What is made with these versions: `make test-latest WITH=test-all`.
WITH ?= test

define with_versions
echo "choosing the versions of what Perun needs: $(1)"; \
$(VENV)/bin/python tools/lock.py build/$(1) $(2) && \
$(MAKE) --no-print-directory $(WITH) PYTHON="$(3)" VENV=.venv-$(1) LOCK=build/$(1) $(4)
endef

# Empty where only the tests are to run: old releases of libraries have no types, or wrong ones.
LINT ?= lint

# Every check runs, also where another one failed, and one failure fails the target. Tests often wait, so that there is
# time for lint beside them; what it says comes after them. The shell starts it with SIGINT ignored.
define checks
failed=; \
$(if $(LINT),$(MAKE) --no-print-directory --keep-going $(LINT) >$(VENV)/lint.log 2>&1 & lint=$$!;) \
$(if $(LINT),trap "kill $$lint 2>/dev/null; exit 130" INT;) \
echo "== pytest"; \
$(VENV)/bin/python -m pytest --numprocesses=auto $(1) || failed=1; \
$(if $(LINT),wait $$lint || failed=1; cat $(VENV)/lint.log;) \
if [ -n "$$failed" ]; then echo "make $@: something failed, see above" >&2; exit 1; fi
endef

lint: lint-ruff lint-mypy lint-imports  ## Check style, types and who imports whom
.PHONY: lint-ruff lint-mypy lint-imports

lint-ruff: $(VENV)/.installed-test
	@echo "== ruff"
	@$(VENV)/bin/ruff check --quiet && echo "ok"

lint-mypy: $(VENV)/.installed-test
	@echo "== mypy --strict"
	@$(VENV)/bin/mypy

lint-imports: $(VENV)/.installed-test
	@echo "== import-linter"
	@$(VENV)/bin/lint-imports --no-logo

lock: $(VENV)/.installed-dev  ## Choose the newest versions of what Perun needs, for `make` on every machine from now on
	@$(VENV)/bin/python tools/lock.py requirements

bench: $(VENV)/.tracers $(VENV)/.strange $(VENV)/.installed-bench build/peer/.made build/history-peers/.made build/dvc/.made $(VENV)/.chromium  ## Measure the speed of Perun itself, beside an older release and git
	@$(VENV)/bin/python benchmarks/run.py --peer build/peer/bin/perun --write docs/benchmarks.md
	@$(VENV)/bin/python benchmarks/zoo.py --commands --write docs/zoo.md

# The older release is installed beside, to be run and compared with; nothing of it is used.
build/peer/.made: $(LOCK)/peer.txt | $(VENV)/.made
	@echo "installing an older release of Perun into build/peer, to compare with"
	@$(VENV)/bin/python -m venv --clear build/peer
	@build/peer/bin/python -m pip install --quiet --quiet --no-input --compile $(LOCKED) $<
	@touch $@

# Programs that find change points, which the benchmarks compare `perun changes` with.
build/history-peers/.made: $(LOCK)/history-peers.txt | $(VENV)/.made
	@echo "installing ruptures and Apache Otava into build/history-peers, to compare with"
	@$(VENV)/bin/python -m venv --clear build/history-peers
	@build/history-peers/bin/python -m pip install --quiet --quiet --no-input --compile $(LOCKED) $<
	@touch $@

# Harnesses whose suites tests measure: a plugin of pytest among them, which the tests themselves do not want.
build/harnesses/.made: $(LOCK)/harnesses.txt | $(VENV)/.made
	@echo "installing pytest-benchmark, pyperf, asv and py-spy into build/harnesses, to measure and import what they do"
	@$(VENV)/bin/python -m venv --clear build/harnesses
	@build/harnesses/bin/python -m pip install --quiet --quiet --no-input --compile $(LOCKED) $<
	@touch $@

# What `perun push` and `perun pull` are compared with.
build/dvc/.made: $(LOCK)/dvc.txt | $(VENV)/.made
	@echo "installing DVC into build/dvc, to compare with"
	@$(VENV)/bin/python -m venv --clear build/dvc
	@build/dvc/bin/python -m pip install --quiet --quiet --no-input --compile $(LOCKED) $<
	@touch $@

screenshots: $(VENV)/.installed-test $(VENV)/.chromium  ## Take the pictures of the manual, by the tests that open pages
	@$(VENV)/bin/python -m pytest --quiet tests/browser

docs: $(VENV)/.installed-docs  ## Build the manual into build/docs
	@$(VENV)/bin/sphinx-build --fail-on-warning --keep-going --quiet docs build/docs
	@echo "the manual is in build/docs/index.html"

clean:  ## Remove what was made, the virtual environment too
	rm -rf $(VENV) .venv-* .nox build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests demo docs tools benchmarks -name __pycache__ -prune -exec rm -rf {} +

# -- the virtual environment ----------------------------------------------------------------------------------
# Perun is installed as its users install it, not in editable mode: meson-python's editable loader looks for
# something to build at every import, which triples the time that `perun --version` takes. A stamp that is
# older than a source, or than the last change of what Perun is built with, installs it anew, in about a second.

$(VENV)/.made: tools/make_venv.sh
	@PYTHON="$(PYTHON)" tools/make_venv.sh $(VENV)
	@touch $@

$(VENV)/.installed-run: $(LOCK)/run.txt | $(VENV)/.made
	@echo "installing what builds and runs Perun into $(VENV)"
	@$(PIP_LOCKED) $<
	@$(COMPILE)
	@touch $@

$(VENV)/.installed: $(VENV)/.installed-run $(VENV)/.builds-with $(SOURCES)
	@echo "installing Perun into $(VENV)"
	@$(PIP) --compile --no-build-isolation --no-deps .
	@touch $@

# A file whose time changes only where its content does. Targets that bring tools bring them first.
$(VENV)/.builds-with: FORCE | $(VENV)/.made $(if $(filter test test-all bench,$(MAKECMDGOALS)),$(VENV)/.tracers)
	@tools/builds_with.sh $(VENV)/bin/python >$@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi
.PHONY: FORCE

# Some tests open pages in a real browser, others trace functions or count instructions. Where what that needs cannot be
# installed they are skipped.
$(VENV)/.chromium $(VENV)/.tracers $(VENV)/.strange $(VENV)/.arm64 $(VENV)/.servers $(VENV)/.harnesses $(VENV)/.linters: $(VENV)/.%: tools/install_tools.sh | $(VENV)/.made
	@tools/install_tools.sh $*
	@touch $@

$(VENV)/.installed-%: $(LOCK)/%.txt | $(VENV)/.installed
	@echo "installing what 'make $*' needs into $(VENV)"
	@$(PIP_LOCKED) $<
	@$(COMPILE)
	@touch $@
