# SPDX-License-Identifier: Apache-2.0

GORELEASER = github.com/goreleaser/goreleaser/v2@v2.12.0
GO_LICENSES = github.com/google/go-licenses@v1.6.0
GOVULNCHECK = golang.org/x/vuln/cmd/govulncheck@v1.1.4
GOLANGCI_LINT = github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GITLAB_CI_LOCAL = gitlab-ci-local@4.64.1
FREEZE = github.com/charmbracelet/freeze@v0.2.2
BENCHSTAT = golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da
CONTROL_PLANE = CGO_ENABLED=0 go -C test/cluster run -trimpath ./cmd/control-plane

# What "version" says of a build, as .goreleaser.yaml has it for a release. All
# of it comes from the commit, so that this gives the same bytes at any time.
# Without git it is empty, and the program knows what the go command noted.
GIT = GIT_CEILING_DIRECTORIES='$(dir $(CURDIR))' TZ=UTC0 git
NEXT_TO_NO_TAG = v0.0.0-%cd-%h
VERSION = $(shell $(GIT) describe --abbrev=12 --tags --match='v[0-9]*' 2>/dev/null || \
	$(GIT) log -1 --no-show-signature --abbrev=12 --date=format-local:%Y%m%d%H%M%S --format=$(NEXT_TO_NO_TAG) 2>/dev/null)
COMMIT = $(shell $(GIT) rev-parse --verify --quiet HEAD 2>/dev/null)
DATE = $(shell $(GIT) log -1 --no-show-signature --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd 2>/dev/null)
TREE = $(if $(COMMIT),$(if $(shell $(GIT) status --porcelain 2>/dev/null),dirty,clean))
STAMP = -X $(CMD).releaseVersion=$(VERSION) -X $(CMD).releaseCommit=$(COMMIT) -X $(CMD).releaseDate=$(DATE) -X $(CMD).releaseTree=$(TREE)
CMD = github.com/kubectl-gc/kubectl-gc/internal/cmd
BUILD = CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags='-s -w -buildid= $(STAMP)'

.PHONY: help build install image test nightly test-unit test-e2e test-versions test-integrations test-race soak faults fuzz foresight charts lint demo cluster-up cluster-down bench bench-short bench-million load bench-go bench-compare profile clean

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "%-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## Build bin/kubectl-gc
	$(BUILD) -o bin/kubectl-gc ./cmd/kubectl-gc
	cp kubectl_complete-gc bin/

install: build ## Install the plugin into PREFIX/bin (default /usr/local)
	install -d $(or $(PREFIX),/usr/local)/bin
	install bin/kubectl-gc bin/kubectl_complete-gc $(or $(PREFIX),/usr/local)/bin

uninstall: ## Remove the plugin from PREFIX/bin
	rm -f $(or $(PREFIX),/usr/local)/bin/kubectl-gc $(or $(PREFIX),/usr/local)/bin/kubectl_complete-gc

CONTAINER_TOOL = podman
IMAGE = kubectl-gc:$(or $(VERSION),latest)
IMAGE_DIR = bin/image
TARGETARCH = $(shell go env GOARCH)

image: ## Build the container image IMAGE for TARGETARCH with CONTAINER_TOOL: podman (default), docker or buildah
	install -d $(IMAGE_DIR)
	GOOS=linux GOARCH=$(TARGETARCH) $(BUILD) -o $(IMAGE_DIR)/kubectl-gc ./cmd/kubectl-gc
	chmod 755 $(IMAGE_DIR)/kubectl-gc
	install -m 644 LICENSE THIRD_PARTY_LICENSES.md $(IMAGE_DIR)
	$(CONTAINER_TOOL) build --platform=linux/$(TARGETARCH) --file=Containerfile --tag=$(IMAGE) \
		--label=org.opencontainers.image.version=$(VERSION) --label=org.opencontainers.image.revision=$(COMMIT) $(IMAGE_DIR)

# Control planes take most of the time, by waiting, and half a gigabyte of memory each: one package has
# some at a time. That of test/foresight mostly waits, and runs beside what needs none.
PLANES = ./internal/cluster ./test/controlplane ./test/differential ./test/e2e ./test/faults
OTHERS = $(shell go list ./... | grep -vE '/(internal/cluster|test/(controlplane|differential|e2e|faults))$$')

# So many processes start and end again that less garbage collection than by default spares them a quarter of the
# processors' time, and control planes a fifth.
test nightly-%: export GOGC = 400

test: control-plane ## Run the short form of every test, on real control planes
	go vet ./...
	go test -timeout 30m $(OTHERS)
	go test -timeout 30m -p 1 $(PLANES)
	go -C test/cluster test ./...
	go vet -C deletiontest ./...
	go -C deletiontest test -timeout 10m ./...

# Each part is what make test leaves out of some tests. A busy machine fails them: Kubernetes' own timeouts end.
NIGHTLY = sessions faults worlds layouts kills strikes charts kubelet versions bench
NIGHTLY_sessions = go test -timeout 1h -p 1 ./test/e2e -skip 'TestKubelet|TestImage|TestUnstickKilled|TestUnstickUnanswered'
NIGHTLY_faults = go test -timeout 1h -p 1 ./test/faults
NIGHTLY_worlds = go test -timeout 1h -p 1 ./internal/cluster ./internal/unstick ./test/differential
NIGHTLY_layouts = go test -timeout 1h ./internal/cmd ./test/foresight -skip TestUninstall
NIGHTLY_charts = sh -c "go test -timeout 1h ./test/foresight -run 'TestUninstall|TestFlux' && go -C test/argocd test ./..."
NIGHTLY_kubelet = go test -timeout 1h ./test/e2e -run 'TestKubelet|TestImage'
NIGHTLY_kills = go test -timeout 1h ./test/e2e -run 'TestUnstickKilled/(bare|sick)'
NIGHTLY_strikes = go test -timeout 1h ./test/e2e -run 'TestUnstickKilled/controllers|TestUnstickUnanswered'
NIGHTLY_bench = go run ./test/bench compare
NIGHTLY_versions = sh -c 'for v in 1.30.14 1.37.0; do \
	KUBECTL_GC_TEST_KUBERNETES=$$v go test -timeout 1h -p 1 -run "TestConformance|TestDifferential$$$$" ./internal/cluster ./test/differential || exit 1; \
	KUBECTL_GC_TEST_KUBERNETES=$$v go -C deletiontest test -timeout 1h -run TestScenarios . || exit 1; done'

nightly: $(NIGHTLY:%=nightly-%) ## Run the long form of the tests, part by part: NIGHTLY="sessions faults ..."

nightly-%: control-plane
	@echo "nightly: $*"
	KUBECTL_GC_NIGHTLY=1 $(NIGHTLY_$*)

test-unit: ## Run the tests that need no control plane
	go test -short ./...

test-e2e: control-plane ## Run the tests of the binary on real control planes
	go test -timeout 30m -p 1 ./test/...

# Those of which test/cluster/versions has a module, and that of test/cluster itself.
VERSIONS = 1.30.14 1.33.13 1.35.4 1.36.3 1.37.0

test-versions: control-plane ## Run those tests against servers of VERSIONS and write docs/compatibility.md; takes an hour
	go run ./test/versions -versions="$(VERSIONS)" -out=docs/compatibility.md

soak: control-plane faults ## Compare CASES generated graphs (default 2000) with the real garbage collector, after the faults
	go test -timeout 3h ./test/differential -run 'TestDifferential|TestVanishingLive' -v -seed=0 -cases=$(or $(CASES),2000) -vanishing=60 -vanishing-gc

# Each test has a number of seeds in proportion to SEEDS.
faults: control-plane ## Run every command under SEEDS (default 240) drawn faults, kills and restarts, from seed SEED
	go test -count=1 -timeout 6h ./test/faults -v -seed=$(or $(SEED),0) -cases=$(or $(SEEDS),240)

# Each is a package and its fuzz test.
FUZZ = internal/cluster/wire:FuzzDecode internal/cmd:FuzzArguments internal/cmd:FuzzSelectors internal/draw:FuzzDOT internal/draw:FuzzHTML \
	internal/draw:FuzzMermaid internal/draw:FuzzSVG pkg/finalizers:FuzzFind pkg/finalizers:FuzzLoad internal/gctest:FuzzParse \
	internal/offline:FuzzOpen internal/offline:FuzzPrinted internal/offline:FuzzText pkg/shell:FuzzQuote

fuzz: ## Fuzz every decoder and parser for FUZZTIME (default 1m) each
	@for each in $(FUZZ); do \
		echo "$$each"; go test ./$${each%%:*} -run='^$$' -fuzz="^$${each##*:}\$$" -fuzztime=$(or $(FUZZTIME),1m) || exit 1; \
	done

test-race: control-plane ## Run the tests of the packages, and those that compare with the garbage collector, under the race detector
	go test -race -timeout 1h ./pkg/... ./internal/... ./test/differential

foresight: control-plane ## Compare previews with what happens, in all layouts of operators, and write docs/foresight-layouts.md
	go test -count=1 -timeout 1h ./test/foresight -run TestLayouts -full -page=$(CURDIR)/docs/foresight-layouts.md

charts: control-plane ## Compare uninstall with what the real helms do, in charts of all shapes, what the controllers of Flux do, and Argo CD's engine; compiles these once
	go test -count=1 -timeout 1h ./test/foresight -run 'TestUninstall|TestFlux' -charts=. -parallel=4 -v
	go -C test/argocd test -count=1 ./...

# In a module of its own: it compiles k9s and Helm. gitlab-ci-local runs GitLab's
# jobs where it is called, and here only says what it reads.
test-integrations: ## Have k9s, Helm and gitlab-ci-local read the files of docs/integrations.md; compiles for minutes once
	CGO_ENABLED=0 go -C test/integrations test -count=1 ./...
	@if ! command -v npx >/dev/null; then echo "skipped: gitlab-ci-local needs npx"; else \
		npx --yes $(GITLAB_CI_LOCAL) --state-dir bin/gitlab-ci-local --file docs/examples/gitlab.yml --list; fi

lint: ## Run the linters
	go run $(GOLANGCI_LINT) run ./...

DEMO_PLANE = $(CONTROL_PLANE) exec --controllers=all --fake-nodes=2 --grace-cap=1s -- sh $(CURDIR)/examples/demo.sh

# The first part needs no cluster; meanwhile one is compiled for the second.
demo: build ## Show what the plugin does, on a file, then on a control plane of its own
	@$(CONTROL_PLANE) build >/dev/null & building=$$!; \
	PATH="$(CURDIR)/bin:$$PATH" sh examples/demo.sh offline; \
	echo; echo "# The same on a real cluster, which is compiled first if that was not done before:"; \
	wait $$building && PATH="$(CURDIR)/bin:$$PATH" $(DEMO_PLANE)

shop-snapshot: build control-plane ## Take the snapshot that the demo begins with
	@PATH="$(CURDIR)/bin:$$PATH" $(DEMO_PLANE) snapshot $(CURDIR)/examples/shop.snapshot

cluster-up: control-plane ## Start a control plane and print the KUBECONFIG to export
	@$(CONTROL_PLANE) up --controllers=all --fake-nodes=2

cluster-down: ## Stop the control plane of cluster-up
	@$(CONTROL_PLANE) down

bench: control-plane ## Compare with other tools and write docs/benchmarks.md; takes an hour
	go run ./test/bench run -out docs/benchmarks.md

bench-short: control-plane ## Measure whole commands on 50,000 objects, and print ratios to docs/benchmarks.md; takes five minutes
	go run ./test/bench compare

load: control-plane ## Print what commands take on a crowded cluster, and how long others wait meanwhile; takes a quarter of an hour
	go run ./test/bench load

bench-million: control-plane ## Compare with other tools on a real API server with a million objects; takes 20 GB of memory and an hour
	go run ./test/bench run -made-up= -in-memory=false -clusters=1000000 -dependents=0 -rounds=3 -out docs/benchmarks-million.md

bench-go: ## Run the Go benchmarks into .bench/new.txt, for benchstat
	mkdir -p .bench
	go test -run='^$$' -bench=. -benchmem -count=$(or $(COUNT),6) -timeout 2h ./pkg/... ./internal/... | tee .bench/new.txt

GO_BENCH = go test -run='^$$' -bench='$(or $(BENCH),.)' -benchmem -count=1 -timeout 2h ./pkg/... ./internal/...

# They take turns, so that what else the machine does concerns both.
bench-compare: ## Compare the Go benchmarks of commit BASE with those of the working tree, COUNT times (default 6)
	@test -n "$(BASE)" || { echo 'usage: make bench-compare BASE=commit' >&2; exit 2; }
	rm -rf .bench/base .bench/base.txt .bench/new.txt && mkdir -p .bench/base
	git archive $(BASE) | tar -x -C .bench/base
	@for round in $$(seq $(or $(COUNT),6)); do \
		echo "round $$round of $(or $(COUNT),6)"; \
		(cd .bench/base && $(GO_BENCH)) >>.bench/base.txt && $(GO_BENCH) >>.bench/new.txt || exit 1; \
	done
	go run $(BENCHSTAT) .bench/base.txt .bench/new.txt

profile: ## Profile the reading of 1,000,000 objects into .bench
	mkdir -p .bench
	go run ./test/bench profile -dir .bench
	go tool pprof -top .bench/cpu.pprof | head -30

# The control plane is compiled once on a machine; this says how long it takes.
.PHONY: control-plane
control-plane:
	@$(CONTROL_PLANE) build >/dev/null

.PHONY: shop-snapshot uninstall docs site pictures session release-files licenses vulncheck release-check release-snapshot release krew-pr

docs: ## Write docs/commands from the commands
	rm -rf docs/commands
	go run ./internal/gendocs markdown docs/commands
	go run ./internal/gendocs house docs

site: ## Build the documentation as pages that can be searched, into bin/site, and check their links; needs npm
	npm --prefix site install --no-save --no-audit --no-fund --ignore-scripts
	npm --prefix site run build
	go test ./test/e2e -run TestSite -count=1 -site=$(CURDIR)/bin/site

pictures: control-plane ## Draw the pictures of the documentation, of the demo's shop and of a large namespace, in Chromium
	mkdir -p docs/pictures
	go test ./test/e2e -run 'TestDocsRest/pictures' -count=1 -pictures=$(CURDIR)/docs/pictures
	go test ./internal/draw -run TestPageOfANamespace -count=1 -shots=$(CURDIR)/docs/pictures

# Freeze gives the session a terminal of 80 columns, since its own output is none.
session: build control-plane ## Run the session of README.md on a control plane of its own, and draw its terminal
	mkdir -p docs/pictures
	CGO_ENABLED=0 GOBIN=$(CURDIR)/bin/tools go install -trimpath $(FREEZE)
	@PATH="$(CURDIR)/bin:$$PATH" $(CONTROL_PLANE) exec --controllers=all --fake-nodes=2 --grace-cap=1s -- \
		$(CURDIR)/bin/tools/freeze --execute='sh $(CURDIR)/examples/session.sh' --execute.timeout=5m \
		--output=$(CURDIR)/docs/pictures/session.svg --window --padding=20,24 --border.radius=8 --font.size=14 \
		--font.family='ui-monospace, SFMono-Regular, Menlo, Consolas, monospace' </dev/null >/dev/null

# What an archive contains beside the program.
release-files:
	rm -rf bin/release
	go run ./internal/gendocs man bin/release/man kubectl-gc
	cp kubectl_complete-gc bin/release/

# Windows needs all modules that the other systems need, and some more. Built
# with -trimpath, go-licenses takes every package for one of the standard library.
licenses: ## Write THIRD_PARTY_LICENSES.md
	CGO_ENABLED=0 GOBIN=$(CURDIR)/bin/tools go install $(GO_LICENSES)
	GOOS=windows bin/tools/go-licenses report ./cmd/kubectl-gc --template hack/licenses.tpl 2>bin/licenses.log >bin/licenses.md || { cat bin/licenses.log; exit 1; }
	mv bin/licenses.md THIRD_PARTY_LICENSES.md

vulncheck: ## Look for known vulnerabilities in the dependencies
	@if ! curl --silent --head --max-time 10 https://vuln.go.dev >/dev/null; then \
		echo "skipped: the vulnerability database, vuln.go.dev, cannot be reached"; \
	else go run $(GOVULNCHECK) ./... && go run $(GOVULNCHECK) -C deletiontest ./...; fi

release-check: control-plane ## Build what a tag gives twice, compare, and install it as krew and Homebrew do; compiles goreleaser once
	$(RUN_GORELEASER) check
	$(MAKE) release-snapshot
	mkdir -p bin && cp dist/checksums.txt bin/checksums.first
	$(MAKE) release-snapshot
	diff bin/checksums.first dist/checksums.txt
	KUBECTL_GC_DIST=$(CURDIR)/dist go test -count=1 -timeout 20m ./test/release

RUN_GORELEASER = CGO_ENABLED=0 go run -trimpath $(GORELEASER)

release-snapshot: ## Build the archives of a release into dist
	$(RUN_GORELEASER) release --snapshot --clean --skip=publish,docker

release: ## Publish a release of the tagged commit; for .github/workflows/release.yml
	$(RUN_GORELEASER) release --clean

# The version is that of the commit's tag, or that of a snapshot.
TAG = $(shell $(GIT) describe --exact-match --tags --match='v[0-9]*' 2>/dev/null)

krew-pr: control-plane ## Render the pull request to krew's index into dist/krew-pr, from HEAD's tag or a snapshot, and validate it
	$(RUN_GORELEASER) release --clean --skip=publish,docker $(if $(TAG),,--snapshot)
	mkdir -p dist/krew-pr/plugins
	cp dist/krew/ownership-gc.yaml dist/krew-pr/plugins/
	cp hack/krew-pr.md dist/krew-pr/description.md
	KUBECTL_GC_DIST=$(CURDIR)/dist go test -count=1 -v ./test/release -run 'TestPullRequest'
	@echo; echo "The pull request: $(if $(TAG),,a rehearsal, since HEAD has no tag)"; find dist/krew-pr -type f

clean: ## Remove what was built in this directory
	rm -rf bin dist
