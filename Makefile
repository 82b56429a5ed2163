# SPDX-License-Identifier: Apache-2.0

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Everything that is built or downloaded is cached here; git ignores it.
export CRYPTO_BROKER_CACHE ?= $(CURDIR)/.cache
TOOLS := $(CRYPTO_BROKER_CACHE)/tools/bin
BIN := $(CRYPTO_BROKER_CACHE)/bin
# The flags of images and of the demo are the same, so the build cache has the packages that both use once.
BUILD := CGO_ENABLED=0 GOFIPS140=v1.0.0 go build -trimpath -tags grpcnotrace

# The demo's cluster. A KUBECONFIG of yours makes `make demo` use that cluster instead.
CLUSTER ?= crypto-broker

##@ Use it

.PHONY: demo
demo: ## See the main job done: cluster, operator, two profiles, an app, a change that reaches it while it calls.
	$(BUILD) -o $(BIN)/demo ./hack/demo
	$(BIN)/demo --cluster $(CLUSTER)

.PHONY: demo-down
demo-down: ## Remove everything the demo made, its cluster included.
	$(BUILD) -o $(BIN)/demo ./hack/demo
	$(BIN)/demo --cluster $(CLUSTER) down

.PHONY: demo-prometheus
demo-prometheus: ## Run Prometheus against the demo until Ctrl-C.
	$(BUILD) -o $(BIN)/demo ./hack/demo
	$(BIN)/demo --cluster $(CLUSTER) prometheus

.PHONY: cluster-up
cluster-up: ## Start a real Kubernetes on this machine (Linux, root; the first time builds it from source).
	hack/cluster/cluster --name $(CLUSTER) up

.PHONY: cluster-down
cluster-down: ## Stop it and remove all it left: processes, mounts, interfaces, routes, cgroups.
	hack/cluster/cluster --name $(CLUSTER) down

##@ Build it

.PHONY: build
build: ## Build the broker, the operator, the key gateway and the command line as static binaries into .cache/bin.
	mkdir -p $(BIN)
	$(BUILD) -o $(BIN)/ ./cmd/...

.PHONY: build-pkcs11
build-pkcs11: ## Build the broker and the key gateway with PKCS #11 as dynamic programs into .cache/bin/pkcs11 (needs a C compiler).
	mkdir -p $(BIN)/pkcs11
	CGO_ENABLED=1 GOFIPS140=v1.0.0 go build -trimpath -tags grpcnotrace,pkcs11 -o $(BIN)/pkcs11/ ./cmd/broker ./cmd/gateway

# A workspace with the modules of programs with OpenSSL, and one more file for each program, which imports what ordinary programs do not link.
OPENSSL := GOWORK=$(CURDIR)/broker/tlsprovider/openssl/go.work
WITH_OPENSSL := -overlay broker/tlsprovider/openssl/overlay.json

.PHONY: build-openssl
build-openssl: ## Build the broker and the key gateway with TLS by OpenSSL as dynamic programs into .cache/bin/openssl (no C compiler, no headers).
	mkdir -p $(BIN)/openssl
	$(OPENSSL) $(BUILD) $(WITH_OPENSSL) -o $(BIN)/openssl/ ./cmd/broker ./cmd/gateway

.PHONY: krew
krew: ## Build the kubectl plugin for each platform and the manifest for krew into dist/krew, from the commit (URL=https://…).
	@[ -z "$(VERSION)" ] || { echo "make krew takes the version from the chart, found VERSION=$(VERSION)" >&2; exit 2; }
	hack/release/release --parts plugin --out dist/krew --url "$(URL)"

.PHONY: release
release: ## Build all files of a release from the commit into dist/release: programs, images, chart, clients, SBOMs, provenance, checksums (some minutes). RELEASE="--key FILE" to sign.
	hack/release/release $(RELEASE)

.PHONY: images
images: ## Build the container images as tar files into .cache/images, without a registry or a base image.
	hack/image/build

.PHONY: images-openssl
images-openssl: ## Build the images of broker and key gateway with OpenSSL, as tar files into .cache/images-openssl (Debian's packages come by apt-get).
	hack/image/build --only broker-openssl,gateway-openssl --out "$(CRYPTO_BROKER_CACHE)/images-openssl"

.PHONY: generate
generate: ## Make all generated code and manifests again: gRPC stubs, deepcopy, CRDs, RBAC, chart and kustomize files.
	hack/generate/all

.PHONY: site
site: ## Build the documentation as a site that opens from a folder, with search, into .cache/site (Python, npm).
	hack/site/build

##@ Test it

# The packages of this module that have tests with a build tag.
packages_with_tag = $$(grep -rlx --exclude-dir=openssl --include='*_test.go' '//go:build \(.* || \)\?$(1)\( [&|]\{2\} .*\)\?' api broker cmd controllers test/chart test/scale webhook | xargs -n 1 dirname | sort -u | sed 's|^|./|')

# The names of their tests in the files with the tag, as a pattern for -run: the other tests of these packages run elsewhere.
tests_with_tag = "^($$(grep -rlx --exclude-dir=openssl --include='*_test.go' '//go:build \(.* || \)\?$(1)\( [&|]\{2\} .*\)\?' api broker cmd controllers test/chart test/scale webhook | xargs sed -n 's/^func \(Test[A-Za-z0-9_]*\)(.*/\1/p' | paste -sd '|' -))\$$"

# The tests of "make test", in three lanes that run at the same time. Tests with a cluster or an API server wait more than they
# compute, so two lanes leave processors idle. Each lane has a long target first, and short ones so that all take about as long.
# Targets with the clients of other languages share folders such as node_modules with "verify", so they are in its lane.
TESTS := verify test-race test-contract \
  test-client-python test-client-js test-client-java test-client-rust test-release test-clients \
  test-conformance test-opentdf test-redis test-browser test-traces test-deployment test-cluster
TESTS_WITH_API_SERVER := test-apiserver test-process test-attack
TESTS_WITH_CLUSTER := test-e2e test-provider-status test-keymanagers test-openssl

# The tests of a package that take longer than this count as hanging. A busy machine needs several times as long as a quiet one.
HANGS := 45m

# The nested modules that test-unit and test-race run.
define test_modules
cd hack/image && go test ./...
	cd hack/dashboards && go test ./...
	cd clients/go && go test -race -vet=off -timeout $(HANGS) ./...
	cd test/bench && go test -vet=off ./...
endef

.PHONY: test
test: ## Run every test: checks, unit, real API server, real cluster, end to end (Linux, root; fails where it can't run).
	hack/tools/build golangci-lint helm kustomize >/dev/null
	hack/cluster/cluster build
	hack/test/lanes "$(TESTS)" "$(TESTS_WITH_API_SERVER)" "$(TESTS_WITH_CLUSTER)"

.PHONY: verify
verify: verify-generated lint ## Check that generated files are current and that the linters have nothing to say.

.PHONY: verify-generated
verify-generated: ## Check that what is committed is what `make generate` makes.
	hack/generate/verify

.PHONY: lint
lint: ## Run the linters, the rule that the broker imports nothing from Kubernetes among them.
	$$(hack/tools/build golangci-lint) run ./...
	linter=$$(hack/tools/build golangci-lint); cd test/conformance && "$$linter" run ./...
	linter=$$(hack/tools/build golangci-lint); cd hack/release && "$$linter" run ./...
	linter=$$(hack/tools/build golangci-lint); cd hack/dashboards && "$$linter" run ./...
	linter=$$(hack/tools/build golangci-lint); cd clients/go && "$$linter" run ./...
	linter=$$(hack/tools/build golangci-lint); cd clients/openssl && "$$linter" run ./...
	linter=$$(hack/tools/build golangci-lint); cd broker/tlsprovider/openssl && "$$linter" run ./...
	linter=$$(hack/tools/build golangci-lint); cd test/deployment && "$$linter" run ./...
	linter=$$(hack/tools/build golangci-lint); cd test/bench && "$$linter" run ./...
	linter=$$(hack/tools/build golangci-lint); cd test/attack && "$$linter" run ./...
	linter=$$(hack/tools/build golangci-lint); cd test/opentdf && "$$linter" run ./...
	linter=$$(hack/tools/build golangci-lint); cd test/browser && "$$linter" run ./...
	linter=$$(hack/tools/build golangci-lint); cd test/contract && "$$linter" run ./...
	linter=$$(hack/tools/build golangci-lint); cd docs/examples/go && "$$linter" run ./...
	linter=$$(hack/tools/build golangci-lint); cd docs/examples/two-nations && "$$linter" run ./...
	hack/tools/maven clients/java --quiet spotless:check
	hack/tools/packages clients/js && cd clients/js && npm run --silent lint && npx prettier --check --log-level warn ../../docs/examples/javascript/server.mjs
	bin=$$(hack/tools/venv clients/python/requirements.txt)/bin; cd clients/python; for check in "format --check" check; do "$$bin/ruff" $$check --config pyproject.toml . ../../test/contract/drivers/python ../../docs/examples/python; done; "$$bin/mypy"

.PHONY: test-unit
test-unit: ## Run the tests that need neither root nor a cluster, without the race detector: under three minutes. "make verify" has go vet's checks.
	go test -vet=off $$(hack/test/packages all)
	$(test_modules)

.PHONY: test-race
test-race: ## Run the tests of test-unit, with the race detector where a package starts goroutines or shares state between them.
	go test -race -vet=off -timeout $(HANGS) $$(hack/test/packages concurrent)
	go test -vet=off -timeout $(HANGS) $$(hack/test/packages sequential)
	$(test_modules)

.PHONY: test-process
test-process: ## Run the tests that start programs, put load on them, or count memory and connections, without the race detector.
	go test -tags process -count=1 -timeout 20m -run $(call tests_with_tag,process) $(call packages_with_tag,process)
	go test -tags process -count=1 ./test/alerts
	cd test/bench && GOFIPS140=v1.0.0 go test -tags process -count=1 ./...

.PHONY: test-clients
test-clients: ## Run released clients of the protocol against the broker (Linux, root, Node.js, a JDK, Python with pip; clients and packages come from the npm registry and from PyPI).
	go test -tags clients -count=1 ./test/clients/... ./broker/session

.PHONY: test-contract
test-contract: ## Put the cases of test/contract to the broker, and to the broker of each supported release, by every client in this repository, by a released one, and by every version of the wire, and kill it each second (Linux, root, Node.js, Python, a JDK, Rust, OpenSSL; 2 minutes).
	cd test/contract && go test -vet=off -count=1 -timeout $(HANGS) .

.PHONY: test-client-js
test-client-js: ## Run the tests of the JavaScript client against the broker (Linux, Node.js, OpenSSL; packages come from the npm registry once; half a minute).
	hack/tools/packages clients/js && cd clients/js && npm_config_cache="$(CRYPTO_BROKER_CACHE)/npm" npm test --silent

.PHONY: test-client-python
test-client-python: ## Run the tests of the Python client against the broker (Linux, Python with pip; packages come from PyPI once; half a minute).
	python=$$(hack/tools/venv clients/python/requirements.txt)/bin/python; cd clients/python && PYTHONPATH=src "$$python" -m pytest --quiet

.PHONY: test-client-java
test-client-java: ## Run the tests of the Java client against the broker (Linux, a JDK 17, Maven; packages come from the Maven registry once; half a minute).
	mkdir -p $(BIN) && CGO_ENABLED=0 go build -o $(BIN)/broker-for-java ./cmd/broker
	BROKER_BINARY=$(BIN)/broker-for-java hack/tools/maven clients/java --quiet verify

# What cargo builds.
RUST := CARGO_TARGET_DIR="$(CRYPTO_BROKER_CACHE)/rust"

.PHONY: test-client-rust
test-client-rust: ## Check the messages and the style of the Rust client, and run its tests against the broker (Linux, Rust; crates come once; a minute, two the first time).
	hack/generate/rust --check
	cd clients/rust && cargo fmt --all --check
	cd docs/examples/rust && cargo fmt --check
	cd clients/rust && $(RUST) cargo clippy --locked --quiet --workspace --all-targets -- --deny warnings
	cd clients/rust && $(RUST) cargo test --locked --quiet --tests

.PHONY: generate-rust
generate-rust: ## Make the messages of the Rust client again from the .proto files (Rust).
	hack/generate/rust

.PHONY: contract-table
contract-table: ## Write the tables of clients, operations and versions in docs/compatibility.md, also from the clients of each supported release (as test-contract, and builds those clients: 5 minutes).
	cd test/contract && go test -vet=off -tags releasedclients -count=1 -timeout 30m -run '^(TestEveryClientKeepsTheContract|TestTheClientsOfReleasesKeepTheirContract)$$' . -update

.PHONY: test-released-clients
test-released-clients: ## Put the cases of each supported release to the broker by the clients of that release (as test-contract; 3 minutes; not part of "make test").
	cd test/contract && go test -vet=off -tags releasedclients -count=1 -timeout 30m -run '^TestTheClientsOfReleasesKeepTheirContract$$' .

# The parts of a release that test-release builds twice; "programs,images,chart,plugin,clients" for all, which takes half an hour.
PARTS ?= chart,clients

.PHONY: test-release
test-release: ## Build parts of a release twice, in folders with different names, and compare each byte (Node.js, Python; half a minute). PARTS=programs,images,chart,plugin,clients for all.
	cd hack/release && go test ./...
	hack/release/reproduce --parts $(PARTS)

.PHONY: test-openssl
test-openssl: ## Run the suite of TLS clients with crypto/tls and with OpenSSL, compile it for other platforms, and test programs and images with it (Linux, root, OpenSSL; Debian's packages come by apt-get; a minute with warm caches). LIBSSL=PATH for another libssl.
	cd clients/openssl && export LIBSSL="$(LIBSSL)" && CGO_ENABLED=0 go test -vet=off -count=1 ./... && go test -race -vet=off -count=1 -short ./...
	cd clients/openssl && GOOS=linux GOARCH=arm64 CGO_ENABLED=0 go build ./...
	cd clients/openssl && GOOS=darwin CGO_ENABLED=0 go build .
	cd clients/openssl && GOOS=windows CGO_ENABLED=0 go build .
	broker/tlsprovider/openssl/test -count=1 broker/tlsprovider broker/telemetry/tracing broker/keys/gateway
	cd broker/tlsprovider/openssl && go test -vet=off -count=1 ./...

.PHONY: test-arm64
test-arm64: ## Run the suite of TLS by OpenSSL, and the broker of the image with OpenSSL, as programs for arm64 in QEMU (Linux, root; QEMU and Debian's packages come by apt-get; 2 minutes; not part of "make test").
	hack/test/arm64

.PHONY: bench-tls
bench-tls: ## Measure TLS by OpenSSL beside crypto/tls: requests over old, new and resumed connections, gRPC streams, and the memory of processes; again with the FIPS provider if "make interop" has built it.
	cd clients/openssl && CGO_ENABLED=0 go test -count=1 -run '^$$' -bench . -benchtime 50x .
	if compgen -G "$(CRYPTO_BROKER_CACHE)/cosmian-*/fipsmodule.cnf" >/dev/null; then \
	  echo "The same with OpenSSL's FIPS provider, which \"make interop\" has built:"; \
	  cd clients/openssl && CGO_ENABLED=0 ../../hack/cosmian/fips go test -count=1 -run '^$$' -bench . -benchtime 50x .; fi

.PHONY: test-keymanagers
test-keymanagers: ## Run the tests of key managers in FIPS mode against PyKMIP, OpenBao, moto and SoftHSM (Linux on x86-64, Python, a C compiler; they come by pip and apt-get).
	GODEBUG=fips140=on go test -tags keymanagers,pkcs11 -count=1 -timeout 10m -run $(call tests_with_tag,keymanagers) $(call packages_with_tag,keymanagers)
	broker/tlsprovider/openssl/test "-tags keymanagers -count=1 -timeout 10m" broker/keys/kmip broker/keys/openbao cmd/gateway/internal/awskms

.PHONY: test-opentdf
test-opentdf: ## Encrypt and decrypt files with OpenTDF's Go SDK and otdf-python through the key access service (Python; otdf-python comes by pip).
	cd test/opentdf && go test -vet=off -count=1 -timeout 20m ./...

.PHONY: test-opentdf-languages
test-opentdf-languages: ## The same with OpenTDF's clients for Java, JavaScript and Rust (a JDK 17, Maven, Node.js, Rust, a C compiler; some minutes the first time; not part of "make test").
	cd test/opentdf && go test -tags languages -vet=off -count=1 -timeout 30m -run '^TestThe(Client|Crate)For' ./...

.PHONY: test-redis
test-redis: ## Run the tests of sessions in Redis against Debian's redis-server (Linux; it comes by apt-get).
	go test -race -vet=off -tags redis -count=1 -timeout 10m ./broker/session/...
	go test -race -vet=off -tags redis,process -count=1 -timeout 10m -run $(call tests_with_tag,redis) ./cmd/broker
	broker/tlsprovider/openssl/test "-tags redis -count=1 -run ^(TestConnectionsHaveTLS|TestSentinelsAndTheirServersHaveTLS|TestAClusterOfRedis8)" broker/session/redis

.PHONY: test-browser
test-browser: ## Look at the page of "kubectl crypto-broker dashboard", beside a real API server, and at the site of the documentation with Debian's Chromium (Linux, Python, npm; Chromium comes by apt-get). DASHBOARD_PICTURES=FOLDER keeps pictures.
	assets=$$(hack/cluster/cluster apiserver); \
	cd test/browser && KUBEBUILDER_ASSETS="$$assets" go test -count=1 -timeout 10m ./...

.PHONY: interop
interop: ## Run the tests of KMIP in FIPS mode against Cosmian KMS, and those of TLS by OpenSSL with its FIPS provider (Linux, Python, Rust, a C compiler, libssl-dev; the first time builds it, 10 minutes or more; not part of "make test").
	hack/cosmian/build >/dev/null
	GODEBUG=fips140=on go test -tags interop -count=1 -timeout 10m -run $(call tests_with_tag,interop) $(call packages_with_tag,interop)
	cd clients/openssl && CGO_ENABLED=0 ../../hack/cosmian/fips go test -tags interop -vet=off -count=1 ./...
	hack/cosmian/fips broker/tlsprovider/openssl/test -count=1 broker/tlsprovider broker/telemetry/tracing broker/keys/gateway
	cd broker/tlsprovider/openssl && ../../../hack/cosmian/fips go test -tags interop -vet=off -count=1 ./...

.PHONY: test-traces
test-traces: ## Run the tests of traces and audit records against a real OpenTelemetry Collector, one of them beside a real API server (Linux; the first time builds the collector from its modules).
	assets=$$(hack/cluster/cluster apiserver); \
	KUBEBUILDER_ASSETS="$$assets" go test -tags traces -count=1 ./test/collector/...
	go test -tags traces -count=1 -run '^TestTheRecordsOfAKeyAccessService' ./cmd/gateway
	TRACES_TLS_PROVIDER=openssl go test -tags traces -count=1 -run '^TestACollectorIsChecked|^TestACollectorThatComesBack' ./test/collector

.PHONY: test-deployment
test-deployment: ## Run what docs/deployment shows, in containers and processes (Linux, root; downloads Podman once, by apt-get and pip).
	cd test/deployment && go test -count=1 ./...

.PHONY: test-conformance
test-conformance: ## Run a part of the published test vectors against the broker (needs pip and OpenSSL).
	cd test/conformance && export GOFIPS140=v1.0.0 && go test ./... && go run . --quick

.PHONY: conformance
conformance: ## Run all published test vectors against the broker and write docs/reports/conformance.md.
	cd test/conformance && GOFIPS140=v1.0.0 go run . --report ../../docs/reports/conformance.md

.PHONY: test-attack
test-attack: ## Attack a broker in little memory as one caller, each attack for a moment, and look what another gets (Linux, root).
	cd test/attack && go test -count=1 ./...

.PHONY: attack
attack: ## The same with all attacks and for longer; print a line for each (Linux, root; 15 minutes). ATTACK="--only NAME" for one.
	cd test/attack && go run . $(ATTACK)

FUZZTIME ?= 2m

.PHONY: fuzz
fuzz: ## Fuzz each target for FUZZTIME (2m): profiles, subjects, PEM, requests for certificates, every method of the broker.
	hack/fuzz $(FUZZTIME)

# The version of Kubernetes for test-apiserver, such as 1.30. Empty for the version of the cluster.
KUBERNETES ?=

.PHONY: test-apiserver
test-apiserver: ## Run the tests against a real API server and etcd. KUBERNETES=1.30 for the oldest that the chart allows.
	assets=$$(hack/cluster/cluster apiserver $(KUBERNETES)); \
	hack/tools/build helm kustomize >/dev/null; \
	KUBEBUILDER_ASSETS="$$assets" go test -tags apiserver -count=1 -timeout $(HANGS) $(call packages_with_tag,apiserver)

.PHONY: test-provider-status
test-provider-status: ## Run the operator, a key gateway and key managers beside real API servers: the status of a key provider, a device, and Secrets encrypted in etcd (Python, a C compiler; PyKMIP and OpenBao come by pip, SoftHSM by apt-get).
	assets=$$(hack/cluster/cluster apiserver); \
	hack/tools/build helm >/dev/null; \
	KUBEBUILDER_ASSETS="$$assets" go test -tags apiserver,keymanagers,pkcs11 -count=1 -run '^(TestTheStatusOfAKeyProviderFollowsAKMIPServer|TestPodsEncryptUnderAKeyOfADevice|TestSecretsInEtcd)' ./cmd/gateway

.PHONY: test-cluster
test-cluster: ## Test the cluster tooling itself: up, up again, killed half-way, down without a trace.
	hack/cluster/cluster_test.sh

.PHONY: test-e2e
test-e2e: ## Run the end-to-end tests on a real cluster of their own (Linux, root; the examples need Node.js, Python, a JDK, Maven and Rust).
	go test -tags e2e -count=1 -timeout 45m -parallel 4 -v ./test/e2e/...

# The version from which "make test-upgrade" upgrades: the newest one of hack/release/versions.
FROM ?= released

.PHONY: test-upgrade
test-upgrade: ## Build the chart and the images of the newest release as it has them, install them on a real cluster, and upgrade while pods call (5 minutes; not part of "make test", which upgrades from the commit before). FROM=COMMIT for another version.
	UPGRADE_FROM="$(FROM)" go test -tags e2e -count=1 -timeout 30m -v -run '^TestTheChartIsUpgraded' ./test/e2e

.PHONY: test-alerts-firing
test-alerts-firing: ## Have the reason of each alert happen on a real cluster, and see it in a real Prometheus and a real Alertmanager (Debian's, by apt-get; 5 minutes; not part of "make test").
	go test -tags e2e,alerts -count=1 -timeout 30m -v -run '^TestEachAlertFires' ./test/e2e

.PHONY: dashboard-pictures
dashboard-pictures: ## Draw the Grafana dashboards for docs/dashboards.md from a Prometheus under load on a real cluster (8 minutes).
	DASHBOARD_PICTURES="$(CURDIR)/docs/images" go test -tags keymanagers -count=1 -run '^TestEachQueryOfTheDashboardOfKeyAccess' ./cmd/gateway
	DASHBOARD_PICTURES="$(CURDIR)/docs/images" go test -tags e2e -count=1 -timeout 20m -v -run '^TestEveryPanelHasAnAnswerUnderLoad$$' ./test/e2e

.PHONY: test-key-gateway
test-key-gateway: ## Encrypt in pods under a key in PyKMIP while the gateways and PyKMIP are killed, and with certificates of brokers, on a real cluster (3 minutes; not part of "make test").
	go test -tags e2e,keymanagers -count=1 -timeout 15m -v -run '^TestPodsEncryptUnderAKey' ./test/e2e

.PHONY: cover
cover: ## Run all tests with coverage; print it for each package, and what nothing reaches (about 15 minutes).
	hack/cover/cover

.PHONY: bench
bench: ## Measure the broker beside the operation in process and a bare gRPC server; write docs/reports/benchmarks.md (a quarter of an hour).
	cd test/bench && GOFIPS140=v1.0.0 go run . --report ../../docs/reports/benchmarks.md $(BENCH)

.PHONY: bench-fairness
bench-fairness: ## Measure what one caller's latency is beside another's ordinary load and beside attacks (Linux, root; an hour).
	cd test/attack && go run . --fairness --seconds 3 $(ATTACK)

.PHONY: bench-propagation
bench-propagation: ## Measure 100 profile changes from apply to served on a real cluster.
	go test -tags e2e -run '^$$' -bench Propagation -benchtime 100x -timeout 40m ./test/e2e

.PHONY: bench-operator
bench-operator: ## Measure the operator with 10,000 pods on a real API server; write docs/reports/operator.md (Linux, root; half an hour).
	assets=$$(hack/cluster/cluster apiserver optimized); \
	KUBEBUILDER_ASSETS="$$assets" go run ./test/scale --report docs/reports/operator.md $(BENCH)

# How often "make bench-keys" measures.
ROUNDS ?= 3

.PHONY: bench-keys
bench-keys: ## Measure keys in PyKMIP and OpenBao, and in Cosmian KMS if "make interop" has built it, and count the requests there; write docs/reports/keys.md (Linux on x86-64, Python; 6 minutes).
	go test -tags keymanagers -count=1 -timeout 1h -run '^$$' -bench Keys -benchtime 1x ./test/bench-keys -report "$(CURDIR)/docs/reports/keys.md" -rounds $(ROUNDS)

.PHONY: bench-key-access
bench-key-access: ## Measure key access services whose keys are in a key manager 50 to 70 ms away; write docs/reports/key-access.md (Linux, Python; 5 minutes).
	go test -tags keymanagers -count=1 -timeout 1h -v -run '^$$' -bench '^BenchmarkKeyAccess$$' -benchtime 1x ./test/bench-key-access -report "$(CURDIR)/docs/reports/key-access.md"

.PHONY: bench-sessions
bench-sessions: ## Measure encrypted sessions beside a server in Node.js with Redis; write docs/reports/sessions.md (Linux, Node.js; Redis comes by apt-get, its client by npm; 5 minutes).
	go run ./test/bench-sessions --report docs/reports/sessions.md $(BENCH)

.PHONY: bench-clients
bench-clients: ## Measure each client beside the client of gRPC of its language; write docs/reports/clients.md (Linux, Node.js, Python, a JDK, Rust; 13 minutes). BENCH="--only js" for one.
	go run ./test/bench-clients --report docs/reports/clients.md $(BENCH)

.PHONY: soak-keys
soak-keys: ## Read keys from PyKMIP for ten minutes, and compare the connections before and after (Linux on x86-64, Python).
	KEYS_LOAD_TIME=10m go test -tags keymanagers -count=1 -timeout 20m -v -run '^TestAfterALoadAServerHasAsManyConnectionsAsBefore$$' ./broker/keys/kmip

# How long "make soak-openssl" and "make soak-key-access" work.
DURATION ?= 1h

.PHONY: soak-key-access
soak-key-access: ## Ask a key access service for 100 data keys a second for DURATION (1h), and compare memory, goroutines and connections before and after (Linux, Python).
	SOAK_TIME=$(DURATION) go test -tags keymanagers -count=1 -timeout 0 -v -run '^$$' -bench '^BenchmarkSoak$$' -benchtime 1x ./test/bench-key-access

.PHONY: soak-openssl
soak-openssl: ## Make connections by OpenSSL that succeed, fail and are canceled for DURATION (1h), and compare memory and connections before and after.
	cd clients/openssl && SOAK_TIME=$(DURATION) CGO_ENABLED=0 go test -count=1 -timeout 0 -v -run '^TestConnectionsOfAllKindsLeaveNothingBehind$$' .

.PHONY: bench-webhook
bench-webhook: ## Measure the webhook for the table of docs/webhook.md: admission beside another tenant's load, and of cluster profiles (two minutes).
	hack/cluster/cluster build
	go test -count=1 -v -run TestAPodDoesNotWait -bench ProfileAdmission ./webhook
	go test -count=1 -run '^$$' -bench ClusterProfile ./webhook/validation
	go test -tags apiserver -count=1 -v -run TestManyProfilesAreDeleted ./webhook

.PHONY: chaos
chaos: ## Break a real cluster part by part under load; write docs/faults.md (Linux, root; 10 minutes). FAULTS=kubelet,clock for some, no page.
	hack/cluster/cluster build
	go run ./test/faults --report docs/faults.md --only "$(FAULTS)"

##@ Keep it tidy

.PHONY: clean
clean: ## Remove what was built, but not the cached tools and Kubernetes binaries.
	rm -rf $(BIN) $(CRYPTO_BROKER_CACHE)/images coverage

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*##"; printf "Usage: make TARGET\n"} \
	  /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z0-9-]+:.*##/ {printf "  %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
