# Everything runs in a virtual environment that the targets make themselves; see `make help`.

PYTHON ?= python3
VENV ?= .venv
DEMO := build/demo

# A user's settings must not reach into the environment, or Perun that is tested is not the one installed.
unexport PYTHONPATH PYTHONHOME
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PATH := $(abspath $(VENV))/bin:$(PATH)

PIP := $(VENV)/bin/python -m pip install --quiet --quiet --no-input --compile
# Folders too: they change when a file is removed.
SOURCES := meson.build pyproject.toml README.md $(wildcard tools/*.py) $(shell find src -not -path '*__pycache__*')

.DEFAULT_GOAL := help
.PHONY: help demo test test-all lint bench screenshots docs clean

help:  ## Show what can be made
	@echo "Perun, a performance version system. Targets:"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-16s %s\n", $$1, $$2 }'

demo: $(VENV)/.installed  ## Measure the history of a small C++ project, find what made it slow, and watch the next commit
	@demo/run.sh $(DEMO)

test: $(VENV)/.tracers $(VENV)/.installed-test $(VENV)/.chromium  ## Lint, and run all tests but the slow ones
	@$(call checks,-m "not slow")

test-all: $(VENV)/.tracers $(VENV)/.installed-test $(VENV)/.chromium $(VENV)/.arm64  ## As test, with the slow ones
	@$(call checks,)

# Every check runs, also where one before it failed; the tests come last, and one failure fails the target.
define checks
failed=; \
$(MAKE) --no-print-directory --keep-going lint || failed=1; \
echo "== pytest"; \
$(VENV)/bin/python -m pytest --numprocesses=auto $(1) || failed=1; \
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

bench: $(VENV)/.tracers $(VENV)/.installed-bench build/peer/.made $(VENV)/.chromium  ## Measure the speed of Perun itself, beside an older release and git
	@$(VENV)/bin/python benchmarks/run.py --peer build/peer/bin/perun --write docs/benchmarks.md

# The older release is installed beside, to be run and compared with; nothing of it is used.
build/peer/.made: $(VENV)/.made
	@echo "installing perun-toolsuite 0.28.3 into build/peer, to compare with"
	@$(VENV)/bin/python -m venv build/peer
	@build/peer/bin/python -m pip install --quiet --quiet --no-input --compile perun-toolsuite==0.28.3
	@touch $@

screenshots: $(VENV)/.installed-test $(VENV)/.chromium  ## Take the pictures of the manual, by the tests that open pages
	@$(VENV)/bin/python -m pytest --quiet tests/browser

docs: $(VENV)/.installed-docs  ## Build the manual into build/docs
	@$(VENV)/bin/sphinx-build --fail-on-warning --keep-going --quiet docs build/docs
	@echo "the manual is in build/docs/index.html"

clean:  ## Remove what was made, the virtual environment too
	rm -rf $(VENV) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests demo docs tools benchmarks -name __pycache__ -prune -exec rm -rf {} +

# -- the virtual environment ----------------------------------------------------------------------------------
# Perun is installed as its users install it, not in editable mode: meson-python's editable loader looks for
# something to build at every import, which triples the time that `perun --version` takes. A stamp that is
# older than a source installs it anew, which takes about a second.

$(VENV)/.made: tools/make_venv.sh
	@PYTHON="$(PYTHON)" tools/make_venv.sh $(VENV)
	@touch $@

$(VENV)/.installed-build: $(VENV)/.made pyproject.toml
	@echo "installing what builds Perun into $(VENV)"
	@$(VENV)/bin/python tools/build_requirements.py | $(PIP) --requirement /dev/stdin
	@touch $@

$(VENV)/.installed: $(VENV)/.installed-build $(SOURCES)
	@echo "installing Perun and what it needs into $(VENV)"
	@$(PIP) --no-build-isolation '.[plots]'
	@touch $@

# Some tests open pages in a real browser, others trace functions. Where what that needs cannot be installed they are
# skipped. The tracers come before Perun, which builds its probes where there is clang.
$(VENV)/.chromium $(VENV)/.tracers $(VENV)/.arm64: $(VENV)/.%: tools/install_tools.sh | $(VENV)/.made
	@tools/install_tools.sh $*
	@touch $@

$(VENV)/.installed-%: pyproject.toml | $(VENV)/.installed
	@echo "installing what 'make $*' needs into $(VENV)"
	@$(PIP) --no-build-isolation '.[$*]'
	@touch $@
