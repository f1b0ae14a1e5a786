# SPDX-License-Identifier: Apache-2.0

GOLANGCI_LINT = github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
CONTROL_PLANE = CGO_ENABLED=0 go -C test/cluster run -trimpath ./cmd/control-plane
BUILD = CGO_ENABLED=0 go build -trimpath -ldflags='-s -w'

.PHONY: help build install test test-unit test-e2e soak lint demo cluster-up cluster-down bench clean

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "%-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## Build bin/kubectl-gc
	$(BUILD) -o bin/kubectl-gc ./cmd/kubectl-gc
	cp kubectl_complete-gc bin/

install: build ## Install the plugin into PREFIX/bin (default /usr/local)
	install -d $(or $(PREFIX),/usr/local)/bin
	install bin/kubectl-gc bin/kubectl_complete-gc $(or $(PREFIX),/usr/local)/bin

test: control-plane ## Run every test, on real control planes
	go vet ./...
	go test -timeout 30m ./...
	go -C test/cluster test ./...

test-unit: ## Run the tests that need no control plane
	go test -short ./...

test-e2e: control-plane ## Run the tests of the binary on real control planes
	go test -timeout 30m ./test/...

soak: control-plane ## Compare CASES generated graphs (default 2000) with the real garbage collector
	go test -timeout 3h ./test/differential -run TestDifferential -v -seed=0 -cases=$(or $(CASES),2000)

lint: ## Run the linters
	go run $(GOLANGCI_LINT) run ./...

demo: build control-plane ## Show what the plugin does on a control plane of its own
	@PATH="$(CURDIR)/bin:$$PATH" $(CONTROL_PLANE) exec --controllers=all --fake-nodes=2 --grace-cap=1s -- sh $(CURDIR)/examples/demo.sh

cluster-up: control-plane ## Start a control plane and print the KUBECONFIG to export
	@$(CONTROL_PLANE) up --controllers=all --fake-nodes=2

cluster-down: ## Stop the control plane of cluster-up
	@$(CONTROL_PLANE) down

bench: ## Run the benchmarks
	go test -run='^$$' -bench=. -benchmem ./pkg/...

# The control plane is compiled once on a machine; this says how long it takes.
.PHONY: control-plane
control-plane:
	@$(CONTROL_PLANE) build >/dev/null

clean: ## Remove what was built in this directory
	rm -rf bin dist
