# One way to run each thing. `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN := PYTHONPATH=.:api $(BIN)/python -m
REPORTS := .test-reports
COMPILE := $(BIN)/pip-compile --quiet --generate-hashes --strip-extras --allow-unsafe --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-emit-options

##@ The two commands

.PHONY: demo
demo: venv ## Local Kubernetes, images, the operator, Slurm, jobs, scaling: each step shown
	$(RUN) hack.demo $(if $(PLAIN),--plain)

.PHONY: test
test: venv ## Everything CI runs: lint, unit, integration, end-to-end
	$(RUN) hack.check lint unit integration e2e

##@ Less of it, and more

.PHONY: check test-full
check: venv ## For each save: lint, unit tests with few histories, some of integration
	$(RUN) hack.check lint unit-quick smoke
test-full: venv ## Whatever there is: every end-to-end test with both versions of Slurm, all histories
	$(RUN) hack.check lint unit-full integration e2e-full

##@ Parts of them

.PHONY: venv lint unit integration e2e bench
venv: $(VENV)/.complete ## The virtual environment with pinned dependencies
lint: venv ## ruff, mypy --strict, import contracts, generated files up to date
	$(RUN) hack.check lint
unit: venv ## Tests that need nothing
	$(RUN) hack.check unit
integration: venv ## Tests against a real API server and real Slurm daemons
	$(RUN) hack.check integration
e2e: venv ## Tests on the local Kubernetes with real Slurm pods (root)
	$(RUN) hack.check e2e
bench: venv ## Print the tables of tests/bench
	$(RUN) pytest tests/bench --capture=no --override-ini=testpaths=tests/bench

$(VENV)/.complete: requirements/dev.txt
	@test -x $(BIN)/pip || $(PYTHON) -m venv --clear $(VENV) || { \
	  echo "python3-venv is missing, installing it"; apt-get update -qq && apt-get install -qq -y python3-venv && $(PYTHON) -m venv --clear $(VENV); }
	@echo "  ...  install pinned Python packages (once)"
	@for pause in 5 30 ""; do \
	  $(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/dev.txt && break; \
	  test -n "$$pause" || exit 1; \
	  echo "  ...  trying again in $$pause s"; sleep "$$pause"; done
	@touch $@

##@ Local Kubernetes

.PHONY: up down status kubeconfig images load-images demo-down
up: venv ## Bring the local Kubernetes up (2 Nodes; NODES=n)
	$(RUN) hack.localkube up --nodes $(or $(NODES),2)
down: venv ## End it and leave nothing behind
	$(RUN) hack.localkube down
demo-down: down ## End what `make demo` started
status: venv ## Its Nodes, services and memory
	@$(RUN) hack.localkube status
kubeconfig: venv ## Print the path of its kubeconfig
	@$(RUN) hack.localkube kubeconfig
images: venv ## Build all container images into the cache
	$(RUN) hack.images build
load-images: venv ## Build all container images and load them into the local Kubernetes
	$(RUN) hack.localkube load-image $$($(RUN) hack.images build)

##@ Upkeep

.PHONY: format lock manifests generate golden clean help
format: venv ## Format and fix what ruff can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
lock: venv ## Pin dependencies again, with hashes
	$(COMPILE) --output-file=requirements/runtime.txt pyproject.toml
	$(COMPILE) --extra=dev --constraint=requirements/runtime.txt --output-file=requirements/dev.txt pyproject.toml
manifests: venv ## Write the CRDs from the API types, the kustomize base, docs/helm-values.md, and tables of docs
	$(RUN) slinky_api.crd write
	$(RUN) hack.packaging write
	$(RUN) hack.dashboards write
	$(RUN) hack.key_rules
	$(RUN) hack.limits_table
	$(RUN) hack.metrics_table
	$(RUN) hack.operator_metrics_table
generate: venv ## Generate the wire code of slurm_client from Slurm's own specification, and its blocking calls
	$(RUN) hack.generate_slurm_client
	$(RUN) hack.client_package
golden: venv ## Write the golden trace of the Cluster controller again; its diff is what a change does
	$(RUN) tests.unit.cluster.stories.golden
clean: ## Remove what tools cached in the tree
	rm -rf $(REPORTS) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
help: ## This list
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
