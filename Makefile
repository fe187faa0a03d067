# `make help` lists what there is. Everything installs into .venv; jars go to ~/.cache.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# How tests run that neither have a real broker nor measure.
PARALLEL ?= -n 2 --dist worksteal
# And those that have real brokers, each of which is started by one process.
GROUPED ?= -n 2 --dist loadgroup
# And those of Spark, of which each process has its own session.
BY_FILE ?= -n 2 --dist loadfile
# The tests that `make test` runs: those of other targets are left out.
NOW := not deploy and not rare
# The tests of what has a compiled twin.
PURE := tests/plane tests/model tests/playbooks tests/playbooks_kafka tests/playbooks_tubemq tests/hostile tests/unit/wire
# And of those with real brokers.
PURE_REAL := tests/apache_kafka/test_gateway.py tests/apache_tubemq/test_tls.py tests/real/test_order.py tests/real/test_large_messages.py
COMPILED := $(wildcard gateway/compiled/*.pyx gateway/compiled/*.pxd)
INSTALLED := $(VENV)/.installed
RUNNABLE := $(VENV)/.runnable

.DEFAULT_GOAL := help
.PHONY: help run run-kafka run-real install test test-fast test-real test-rare test-deploy lint bench fuzz soak faults shaping suites matrix diagram chart metrics proto clean

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
@echo "== installing into $(VENV) (a minute or more with an empty package cache)"
@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$(1)]'
@touch $@
endef

$(RUNNABLE): pyproject.toml constraints.txt $(COMPILED)
	$(call installed,lab)

$(INSTALLED): pyproject.toml constraints.txt $(COMPILED)
	$(call installed,test)
	@touch $(RUNNABLE)

test: lint ## all tests that this machine can run, real brokers included, but those of test-deploy and test-rare
	@echo "== all tests (45 to 90 minutes on two cores; 1 GB of jars for real brokers and clients the first time)"
	@$(BIN)/python -m pytest -q --durations=20 $(PARALLEL) -m 'not broker and not alone and not spark and $(NOW)'
	@$(BIN)/python -m pytest -q --durations=20 $(BY_FILE) -m 'spark and not broker and not alone and $(NOW)'
	@$(BIN)/python -m pytest -q --durations=20 $(GROUPED) -m 'broker and not alone and $(NOW)'
	@$(BIN)/python -m pytest -q --durations=20 -m 'alone and $(NOW)'
	@echo "== the same once more without compiled loops, where these matter"
	@GATEWAY_PURE=1 $(BIN)/python -m pytest -q $(PARALLEL) -m 'not broker and not alone and $(NOW)' $(PURE)
	@GATEWAY_PURE=1 $(BIN)/python -m pytest -q $(GROUPED) -m 'broker and not alone and $(NOW)' $(PURE_REAL)

test-fast: lint ## five to seven minutes: no Java, and without what takes seconds against running processes
	@$(BIN)/python -m pytest -q $(PARALLEL) -m 'not real and not long and not spark and $(NOW)'

test-real: $(INSTALLED) ## real clients through the gateway to a real Pulsar
	@$(BIN)/python -m pytest tests/real

test-rare: $(INSTALLED) ## what takes minutes and seldom changes: jobs of Spark that are killed, or whose disk is full
	@$(BIN)/python -m pytest -q --durations=20 $(BY_FILE) -m 'rare and spark and not broker'
	@$(BIN)/python -m pytest -q --durations=20 $(GROUPED) -m 'rare and broker'

test-deploy: $(INSTALLED) ## images built and started, pods rolled by Kubernetes' own controllers, units by systemd; needs Go, helm, root and Debian
	@$(BIN)/python -m pytest -q --durations=20 -m deploy

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

soak: $(INSTALLED) ## memory and time under many connections; PARTS="idle stalled churn gc reload costs handshakes scrapes topics requests", 50 minutes
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

metrics: $(INSTALLED) ## docs/metrics.md, docs/usage.schema.json and docs/pipeline-tables.md, from what the code declares
	@$(BIN)/python -m tests.docs.metrics
	@$(BIN)/python -m tests.docs.usage
	@$(BIN)/python -m tests.docs.tables

diagram: $(INSTALLED) ## the packages and their imports, drawn into docs/architecture.md
	@$(BIN)/python -m tests.docs.diagram

proto: $(INSTALLED) ## generated modules, after a change in proto/
	@$(BIN)/python proto/regenerate.py

clean: ## what was built and installed here
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
