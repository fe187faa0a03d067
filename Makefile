# `make help` lists what there is. Everything installs into .venv; jars go to ~/.cache.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Where `.ci/tools all` puts what it builds.
export PATH := $(CURDIR)/build/tools:$(PATH)
# Tests start hundreds of processes of Python, each of which would compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE
# One run of pytest: two processes, and what has the same broker in one of them.
PYTEST := $(BIN)/python -m pytest -q -n 2 --dist loadgroup
# What test-all runs once more without compiled modules, beside the conformance battery (tests/conformance/test_pure.py):
# what drives system calls, and real clients.
PURE := tests/plane tests/playbooks_tubemq tests/real/test_order.py tests/real/test_large_messages.py tests/scenes
COMPILED := $(wildcard gateway/plane/*.pxd gateway/wire/*.pxd gateway/wire/*/*.pxd)
COMPILED += $(COMPILED:.pxd=.py)
INSTALLED := $(VENV)/.installed
RUNNABLE := $(VENV)/.runnable

.DEFAULT_GOAL := help
.PHONY: help run run-kafka run-real install check test test-all lint bench fuzz sanitize soak faults shaping suites matrix diagram chart metrics proto clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

run: $(RUNNABLE) ## see it: brokers in memory, the gateway, real clients, a live table; SECONDS=20 ends by itself
	@$(BIN)/gateway demo $(if $(SECONDS),--seconds $(SECONDS))

run-kafka: $(RUNNABLE) ## the same of Kafka, where a rule limits one topic
	@$(BIN)/gateway demo --protocol kafka $(if $(SECONDS),--seconds $(SECONDS))

run-real: $(RUNNABLE) ## the same on a real Pulsar, which Maven fetches the first time (240 MB)
	@$(BIN)/python -m tests.real.run $(if $(SECONDS),--seconds $(SECONDS))

install: $(INSTALLED) ## the environment of developers, with the `gateway` command in .venv/bin

# $(call installed,extra): an environment of the package with an extra.
define installed
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	{ echo "needs Python 3.11 or newer; name one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
@echo "== installing into $(VENV) (one to three minutes)"
@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$(1)]'
@touch $@
endef

$(RUNNABLE): pyproject.toml constraints.txt $(COMPILED)
	$(call installed,lab)

$(INSTALLED): pyproject.toml constraints.txt $(COMPILED)
	$(call installed,test)
	@touch $(RUNNABLE)

check: lint ## after each edit, 4 minutes on two cores: style, types, contracts, and all tests that start no process
	@$(PYTEST) --tier check

test: lint ## before a commit, 15 minutes: check, the readers' battery, hostile peers, a short fuzz, and scenes on real brokers and on Spark
	@echo "== tests (15 minutes on two cores; the first time 800 MB of jars for real brokers and clients)"
	@$(PYTEST) --tier test --durations=50

test-all: lint ## before an issue is closed, hours: every test, on pure loops too, what is deployed, what is rare; needs Go, Node.js, Rust, helm, root and Debian for all
	@echo "== all tests (hours on two cores; the first time 1 GB of jars)"
	@$(PYTEST) --tier all --durations=50
	@echo "== the same once more without compiled loops, where these matter"
	@GATEWAY_PURE=1 $(PYTEST) --tier all $(PURE)

lint: $(INSTALLED) ## style, types, import contracts
	@echo "== style, types, import contracts"
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet
	@$(BIN)/mypy
	@mkdir -p build && $(BIN)/lint-imports --no-cache > build/lint-imports.log 2>&1 || \
		{ cat build/lint-imports.log; exit 1; }

bench: $(INSTALLED) ## beside HAProxy; PEERS=java adds Apache's proxy and Kroxylicious, PEERS=observed everything on, BESIDE=folder another checkout
	@$(BIN)/python -m tests.bench

fuzz: $(INSTALLED) ## for long: SECONDS=60 of each target, FRAMES=10000000 through a gateway and judged, KEEP=1
	@$(BIN)/python -m tests.fuzz $(if $(SECONDS),--seconds $(SECONDS)) \
		$(if $(FRAMES),--frames $(FRAMES)) $(if $(KEEP),--keep)

SANITIZED := build/sanitized
SANITIZERS := -fsanitize=address,undefined -fno-sanitize=alignment -fno-sanitize-recover=undefined

sanitize: $(INSTALLED) ## readers, plane and fuzz, compiled with gcc's checks of memory and of undefined behaviour: half an hour
	@rm -rf $(SANITIZED) && mkdir -p $(SANITIZED)
	@git ls-files -z | xargs -0 cp --parents -t $(SANITIZED)
	@cd $(SANITIZED) && CFLAGS="$(SANITIZERS)" LDFLAGS="$(SANITIZERS)" $(CURDIR)/$(BIN)/python -m pip install \
		--quiet --disable-pip-version-check --no-deps --target built . && cp -r built/gateway .
	@cd $(SANITIZED) && LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)" \
		ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc $(CURDIR)/$(PYTEST) --tier test --ignore tests/conformance/test_pure.py \
		--ignore tests/fuzz/test_guided.py \
		tests/conformance tests/fuzz tests/plane tests/playbooks tests/playbooks_kafka tests/playbooks_tubemq

soak: $(INSTALLED) ## memory and time under many connections; PARTS="idle stalled churn gc reload costs handshakes scrapes topics requests hostile", 50 minutes
	@$(BIN)/python -m tests.soak $(PARTS)

faults: $(INSTALLED) ## direct beside through the gateway, on a real cluster that fails: 40 minutes; ROUNDS=1
	@$(BIN)/python -m tests.faults --rounds $(or $(ROUNDS),5)

shaping: $(INSTALLED) ## limits under real clients and a real broker: 40 minutes; ONLY=accuracy, SHORT=1
	@$(BIN)/python -m tests.shaping $(if $(ONLY),--only $(ONLY)) $(if $(SHORT),--short)

suites: $(INSTALLED) ## the tests that client libraries bring along, directly and through the gateway; ONLY=rust, go, franz, kafka-python, librdkafka or aiokafka, TESTS=seek
	@$(BIN)/python -m tests.suites $(if $(ONLY),--only $(ONLY)) $(if $(TESTS),--tests "$(TESTS)") \
		$(if $(REPEAT),--repeat $(REPEAT)) $(if $(CONFIGURATION),--configuration $(CONFIGURATION))

matrix: $(INSTALLED) ## clients' scenes in all configurations beside a direct connection: hours; ONLY=mask+far, REPEAT=50
	@$(BIN)/python -m tests.matrix $(if $(ONLY),--only direct --only $(ONLY)) \
		$(if $(SCENES),--scenes "$(SCENES)") $(if $(REPEAT),--repeat $(REPEAT))

chart: $(INSTALLED) ## the Helm chart's schema and README, and the renderings that tests compare; needs helm
	@$(BIN)/python -m tests.helm.schema
	@$(BIN)/python -m tests.helm.readme
	@$(BIN)/python -m tests.helm.rendering

metrics: $(INSTALLED) ## docs/metrics.md, the settings in docs/configuration.md, docs/errors.md, docs/usage.schema.json, docs/pipeline-tables.md, tables of docs/protocols and the budgets of tests, from what the code declares
	@$(BIN)/python -m tests.docs.metrics
	@$(BIN)/python -m tests.docs.settings
	@$(BIN)/python -m tests.docs.errors
	@$(BIN)/python -m tests.docs.usage
	@$(BIN)/python -m tests.docs.tables
	@$(BIN)/python -m tests.docs.budgets
	@$(BIN)/python -m tests.docs.states

diagram: $(INSTALLED) ## the packages and their imports, drawn into docs/architecture.md
	@$(BIN)/python -m tests.docs.diagram

proto: $(INSTALLED) ## generated modules, after a change in proto/
	@$(BIN)/python proto/regenerate.py

clean: ## what was built and installed here
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
