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
	$(RUN) hack.installing.demo $(if $(PLAIN),--plain)

.PHONY: test
test: venv ## Everything CI runs: lint, unit, integration, end-to-end (PROFILE=1: where the time goes)
	@$(RUN) hack.release support
	$(RUN) hack.check $(if $(PROFILE),--profile) lint unit integration e2e

##@ Less of it, and more

.PHONY: check test-full
check: venv ## For each save: lint, unit tests with few histories, some of integration
	$(RUN) hack.check lint unit-quick smoke
test-full: venv ## Whatever there is: every end-to-end test with both versions of Slurm, all histories (SUITES=unit-full …)
	$(RUN) hack.check $(or $(SUITES),lint unit-full integration-full e2e-full)

##@ Parts of them

.PHONY: venv lint unit integration e2e bench campaign
venv: $(VENV)/.complete ## The virtual environment with pinned dependencies
lint: venv ## ruff, mypy --strict, import contracts, generated files up to date
	$(RUN) hack.check lint
unit: venv ## Tests that need nothing
	$(RUN) hack.check $(if $(PROFILE),--profile) unit
integration: venv ## Tests against a real API server and real Slurm daemons
	$(RUN) hack.check $(if $(PROFILE),--profile) integration
e2e: venv ## Tests on the local Kubernetes with real Slurm pods (root)
	$(RUN) hack.check $(if $(PROFILE),--profile) e2e
campaign: venv ## Random rounds of jobs, users and faults from seeds, on a local Kubernetes (SEEDS=20, FROM=1, SITES=3, MINUTES=n, SECONDS=n)
	$(RUN) tests.campaign --seeds $(or $(SEEDS),5) --from $(or $(FROM),1) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SECONDS),--seconds $(SECONDS)) $(if $(SITES),--sites $(SITES))
bench: venv ## Measure: one table, and build/bench.json; some 15 minutes (ALL=1 for every size and bench, OUT=file)
	$(RUN) tests.bench $(if $(ALL),--all) $(if $(OUT),--out $(OUT))

# Kubernetes takes minutes of all processors, pip one: it begins beside pip, and who needs it waits for it.
BEGIN_PROGRAMS = $(PYTHON) -m hack.localkube.programs & programs=$$!;
$(VENV)/.complete: requirements/dev.txt
	@test -x $(BIN)/pip || $(PYTHON) -m venv --clear $(VENV) || { \
	  echo "python3-venv is missing, installing it"; apt-get update -qq && apt-get install -qq -y python3-venv && $(PYTHON) -m venv --clear $(VENV); }
	@echo "  ...  install pinned Python packages (once)"
	@$(if $(filter test test-full check unit demo,$(MAKECMDGOALS)),$(BEGIN_PROGRAMS)) \
	for pause in 5 30 ""; do \
	  $(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/dev.txt && break; \
	  test -n "$$pause" || { test -z "$${programs:-}" || kill "$$programs" || true; exit 1; }; \
	  echo "  ...  trying again in $$pause s"; sleep "$$pause"; done
	@touch $@

##@ Documentation

DOCS := build/docs
DOCS_BIN := $(DOCS)/venv/bin
MKDOCS := NO_MKDOCS_2_WARNING=1 $(DOCS_BIN)/mkdocs
MERMAID := 11.17.2
MERMAID_SHA256 := 6ad2f42c3fc26bbf9e45cbb6d11898972573ea52b33a5f4ff51952899f950ffd

.PHONY: docs docs-serve docs-version docs-pages
docs: docs-pages ## Build the documentation site, strictly, into build/docs/site
	$(MKDOCS) build --clean --config-file $(DOCS)/mkdocs.yml
	@echo "docs: $(DOCS)/site/index.html; make docs-serve shows it with its search"
docs-serve: docs ## The same, on http://127.0.0.1:8000 (PORT=n)
	$(PYTHON) -m http.server --bind 127.0.0.1 --directory $(DOCS)/site $(or $(PORT),8000)
docs-version: docs-pages ## Commit the site of a release to the branch gh-pages (VERSION=0.1), as its latest version
	@test -n "$(VERSION)" || { echo "make docs-version VERSION=0.1"; exit 2; }
	PATH="$(CURDIR)/$(DOCS_BIN):$$PATH" NO_MKDOCS_2_WARNING=1 $(DOCS_BIN)/mike deploy --config-file $(DOCS)/mkdocs.yml --update-aliases $(VERSION) latest
	$(DOCS_BIN)/mike set-default --config-file $(DOCS)/mkdocs.yml latest
docs-pages: venv $(DOCS)/venv/.complete $(DOCS)/mermaid-$(MERMAID).js
	$(RUN) hack.documents.site.stage
	@install -D -m 644 $(DOCS)/mermaid-$(MERMAID).js $(DOCS)/pages/scripts/mermaid.min.js
	@install -D -m 644 hack/documents/site/site.css $(DOCS)/pages/styles/site.css

$(DOCS)/venv/.complete: requirements/docs.txt
	@mkdir -p $(DOCS) && $(PYTHON) -m venv --clear $(DOCS)/venv
	@echo "  ...  install the generator of the documentation (once)"
	@$(DOCS_BIN)/pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/docs.txt
	@touch $@

# What draws pictures from their text, from the npm registry by its own client, and checked.
$(DOCS)/mermaid-$(MERMAID).js:
	@command -v npm > /dev/null || { echo "docs: npm is missing; it fetches the script that draws pictures. Install Node.js, e.g. apt-get install npm"; exit 1; }
	@mkdir -p $(DOCS) && cd $(DOCS) && npm pack --silent mermaid@$(MERMAID) > /dev/null
	@echo "$(MERMAID_SHA256)  $(DOCS)/mermaid-$(MERMAID).tgz" | sha256sum --check --quiet
	@tar --extract --gzip --to-stdout --file $(DOCS)/mermaid-$(MERMAID).tgz package/dist/mermaid.min.js > $@.part && mv $@.part $@

##@ Releasing

RELEASE_BIN := build/release/venv/bin

.PHONY: release release-assets release-check release-images-check pyxis-check version
release: venv build/release/venv/.complete ## Images, charts, manifests, wheels, SBOMs, checksums and provenance into dist/VERSION (REGISTRY=, SOURCE=)
	$(RUN) hack.release make $(if $(DIRTY),--allow-dirty) $(if $(PARTS),--parts $(PARTS)) $(if $(BUILDER),--builder $(BUILDER))
release-assets: venv ## Put the files of dist/VERSION side by side into dist/VERSION-assets, to be attached to a release
	$(RUN) hack.release assets
release-check: venv ## Install each thing that dist/VERSION has into something empty, and use it
	RELEASE=dist/$$($(RUN) hack.release version) PYTHONPATH=.:api $(BIN)/pytest -v tests/release/test_images.py tests/release/test_plugin.py tests/release/test_publish.py tests/integration/release
release-images-check: venv ## The same for the images alone
	RELEASE=dist/$$($(RUN) hack.release version) PYTHONPATH=.:api $(BIN)/pytest -v tests/release/test_images.py
pyxis-check: venv ## Build slurmd with pyxis and enroot from folders with their sources (PYXIS=, ENROOT=), and run jobs with it
	@test -d "$(PYXIS)" -a -d "$(ENROOT)" || { echo "make pyxis-check PYXIS=FOLDER ENROOT=FOLDER [SLURM=26.05]"; exit 2; }
	rm -rf build/pyxis
	$(RUN) hack.images.pyxis $(or $(SLURM),26.05) --pyxis $(PYXIS) --enroot $(ENROOT) build/pyxis
	PYXIS_TREE=build/pyxis PYTHONPATH=.:api $(BIN)/pytest -v tests/release/test_pyxis.py
version: venv ## Print the version; VERSION=0.3.0 writes it to all places that have it
	$(RUN) hack.release version $(VERSION)
	$(if $(VERSION),$(RUN) hack.packaging write)

# Both in one call: the check is of what was just made, also with --jobs.
ifneq ($(filter release,$(MAKECMDGOALS)),)
release-check: release
endif

build/release/venv/.complete: requirements/release.txt
	@mkdir -p build/release && $(PYTHON) -m venv --clear build/release/venv
	@$(RELEASE_BIN)/pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/release.txt
	@touch $@

.PHONY: audit audit-images
audit: venv build/audit/venv/.complete ## Known vulnerabilities of all pinned Python packages (asks PyPI)
	$(RUN) hack.release.audit python
audit-images: venv ## The same of the images of dist/VERSION (grype on the PATH, which fetches its database)
	$(RUN) hack.release.audit images

build/audit/venv/.complete: requirements/audit.txt
	@mkdir -p build/audit && $(PYTHON) -m venv --clear $(@D)
	@$(@D)/bin/pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/audit.txt
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

##@ Against the Kubernetes of the current kubeconfig

IMG ?= localhost/slinky/slurm-operator:dev
KUBECTL ?= kubectl
HELM ?= helm
DOCKER ?= docker
DIST := dist
CRD_FOLDERS := helm/slurm-operator/crds helm/slurm-jobs/crds
KINDS := $(patsubst slinky.slurm.net_%.yaml,%,$(notdir $(wildcard $(CRD_FOLDERS:%=%/slinky.slurm.net_*.yaml))))
# Where there is no kubectl or helm, those that the local Kubernetes has built.
export PATH := $(PATH):$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/slurm-operator/bin

.PHONY: install uninstall deploy undeploy run values-dev
install: ## Install or upgrade the CRDs
	$(KUBECTL) apply --server-side --force-conflicts $(CRD_FOLDERS:%=--filename=%)
uninstall: ## Delete the CRDs; refused while objects exist, which would go too (FORCE=1)
	@left="$$(for kind in $(KINDS); do $(KUBECTL) get $$kind.slinky.slurm.net --all-namespaces --output=name 2>/dev/null || true; done)"; \
	if [ -n "$$left" ] && [ -z "$(FORCE)" ]; then \
	  echo "uninstall: these would be deleted, too: delete them first, or say FORCE=1" >&2; echo "$$left" >&2; exit 1; fi
	$(KUBECTL) delete --ignore-not-found $(CRD_FOLDERS:%=--filename=%)
deploy: install ## Install or upgrade the operator by its chart (IMG=repository:tag, SLURM=26.05, VALUES=file)
	img='$(IMG)'; $(HELM) upgrade --install slurm-operator helm/slurm-operator --namespace slurm-operator --create-namespace \
	  --skip-crds --set-string "image.repository=$${img%:*},image.tag=$${img##*:}" $(SLURM:%=--set-string=slurm.version=%) $(VALUES:%=--values=%) --wait --timeout=300s
undeploy: ## Uninstall the operator; CRDs, Clusters and Slurm stay
	$(HELM) uninstall slurm-operator --namespace slurm-operator --ignore-not-found --wait
run: venv ## Run the operator on this machine, slurmrestd forwarded (ARGS="--log-level=DEBUG")
	$(RUN) hack.developing.run -- $(ARGS)
values-dev: ## Write helm/*/values-dev.yaml, your own values for skaffold and make run; keeps those that exist
	@for chart in slurm-operator slurm; do \
	  file=helm/$$chart/values-dev.yaml; \
	  test -e $$file || { cp hack/developing/values/$$chart.yaml $$file; echo "$$file"; }; done

.PHONY: skaffold-check
skaffold-check: venv ## Render all profiles of skaffold, and measure from saving a file to running it (root; builds skaffold once)
	$(RUN) hack.developing.loop_check

##@ Images and charts

.PHONY: docker-build docker-push package helm-docs
docker-build: ## Build the operator's image with Docker (IMG=repository:tag)
	DOCKER_BUILDKIT=1 $(DOCKER) build --file containers/operator/Dockerfile --tag $(IMG) .
docker-push: ## Push it to the registry in its name
	$(DOCKER) push $(IMG)
package: ## Package the charts into dist/
	for chart in helm/*/Chart.yaml; do $(HELM) package "$${chart%/Chart.yaml}" --destination $(DIST); done
helm-docs: venv ## Write docs/helm-values.md and the schemas of values from the charts' comments
	$(RUN) hack.packaging write

##@ Upkeep

.PHONY: plugin format lock manifests generate golden clean help
format: venv ## Format and fix what ruff can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
lock: venv ## Pin dependencies again, with hashes
	$(COMPILE) --output-file=requirements/runtime.txt pyproject.toml
	$(COMPILE) --extra=dev --constraint=requirements/runtime.txt --output-file=requirements/dev.txt pyproject.toml
	$(COMPILE) --output-file=requirements/docs.txt requirements/docs.in
	$(COMPILE) --constraint=requirements/runtime.txt --output-file=requirements/sync.txt requirements/sync.in
	$(COMPILE) --constraint=requirements/dev.txt --output-file=requirements/plugin.txt kubectl_slurm/pyproject.toml
	$(COMPILE) --output-file=requirements/release.txt requirements/release.in
	$(COMPILE) --output-file=requirements/audit.txt requirements/audit.in
manifests: venv ## Write the CRDs from the API types, the kustomize base, docs/helm-values.md, and tables of docs
	$(RUN) slinky_api.crd write
	$(RUN) hack.packaging write
	$(RUN) hack.dashboards write
	$(RUN) hack.documents.tables.key_rules
	$(RUN) hack.documents.tables.limits
	$(RUN) hack.documents.tables.metrics
	$(RUN) hack.documents.tables.operator_metrics
	$(RUN) tests.unit.kubectl_slurm.screens
	$(RUN) hack.release support --write
generate: venv ## Generate the wire code of slurm_client from Slurm's own specification, and its blocking calls
	$(RUN) hack.client.wire
	$(RUN) hack.client.package
plugin: venv ## Make build/kubectl-slurm, one file (URL= of its archive: with a manifest for krew)
	$(RUN) hack.release.plugin build $(if $(URL),--url $(URL))
golden: venv ## Write the golden trace of the Cluster controller again; its diff is what a change does
	$(RUN) tests.unit.cluster.stories.golden
clean: ## Remove what tools cached in the tree
	rm -rf $(REPORTS) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
help: ## This list
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
