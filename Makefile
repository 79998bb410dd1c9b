# make            format, vet, lint, test, and check generated files
# make help       list the targets
SHELL := /bin/bash
GO ?= go
# With more than one module, go build finds the commit only if it is told to.
VCS := $(if $(wildcard .git),-buildvcs=true)
# Without gRPC for Google Cloud Storage, which is not used: 12 MB less, and a quicker start.
TAGS := -tags disable_grpc_modules
BIN ?= bin
RACE ?=
FUZZTIME ?= 5s
BENCHCOUNT ?= 1

.DEFAULT_GOAL := all
.PHONY: all help bench-memory measure-batches measure-temporal chaos build playground install test lint fmt vet bench fuzz generate check-generated examples site ci clean

all: fmt vet lint test check-generated

help:
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 20

build: ## build the commands, static, in bin/: qtype is the distribution, qtype-core has the parts of the core
	CGO_ENABLED=0 $(GO) build -trimpath $(VCS) $(TAGS) -ldflags "-s -w" -o $(BIN)/qtype ./distribution/cmd/qtype
	CGO_ENABLED=0 $(GO) build -trimpath $(VCS) $(TAGS) -ldflags "-s -w" -o $(BIN)/qtype-core ./cmd/qtype
	CGO_ENABLED=0 $(GO) build -trimpath $(VCS) $(TAGS) -ldflags "-s -w" -o $(BIN)/qtype-check ./cmd/qtype-check

playground: ## write the playground page, static files, to bin/playground
	$(GO) run ./internal/playground/build $(BIN)/playground

install: ## install the commands with go install
	$(GO) install $(VCS) $(TAGS) ./distribution/cmd/qtype ./cmd/qtype-check

test: ## run all tests; RACE=-race with the race detector
	$(GO) test $(RACE) -timeout 15m ./... ./distribution/...

lint: ## run golangci-lint in the version of .ci/tools.env
	.ci/lint

fmt: ## format the code
	gofmt -w $$(git ls-files --cached --others --exclude-standard '*.go')

vet: ## run go vet
	$(GO) vet ./... ./distribution/...

bench-memory: ## measure memories of SIZES=10,1000 sessions and messages on SQLite, PostgreSQL and Redis
	QTYPE_SCALE=$${SIZES:-10,1000} $(GO) test -count 1 -timeout 120m -run TestScale -v ./distribution/memory/servers

measure-batches: ## compare a run of ROWS=100000 rows in batches with a normal one: output, price, memory; and kill runs KILLS=100 times
	QTYPE_TEST_BATCH_ROWS=$${ROWS:-100000} QTYPE_TEST_BATCH_KILLS=$${KILLS:-100} QTYPE_TEST_BATCH_KILL_ROWS=$${KILLROWS:-600} $(GO) test -count 1 -timeout 0 -run TestRun_BatchesMeasured -v ./internal/command

measure-temporal: ## compare the turns a second of servers with and without workers, and what Temporal adds to ROWS=2000 calls of 50 ms
	QTYPE_TEMPORAL_MEASURED=$${ROWS:-2000} $(GO) test -count 1 -timeout 0 -run TestTemporal_Measured -v ./distribution/cmd/qtype

chaos: ## run ROWS=20000 rows while workers, Temporal, the store and networks fail, on SQLite, PostgreSQL and Redis: what differs from a local run
	QTYPE_CHAOS=$${ROWS:-20000} $(GO) test -count 1 -timeout 0 -run TestTemporal_Chaos -v ./distribution/cmd/qtype

bench: build ## compare with programs written by hand, run all benchmarks BENCHCOUNT times, measure the start-up time
	$(GO) build -trimpath -o $(BIN)/bench ./distribution/bench
	$(GO) run ./distribution/bench/compare run -qtype $(abspath $(BIN))/qtype -bench $(abspath $(BIN))/bench
	$(GO) test -run '^$$' -bench . -benchmem -count $(BENCHCOUNT) ./...
	.ci/startup $(BIN)/qtype

fuzz: ## run every fuzz target for FUZZTIME
	.ci/fuzz $(FUZZTIME)

generate: ## generate schema.json and docs/reference from package spec, the embedded catalogue of models, docs/rules.md from the rules, docs/commands.md and the picture of the README from the program
	$(GO) generate ./internal/catalogue ./internal/schemagen ./internal/docgen ./internal/lint
	$(GO) test -count=1 -run '^TestDocs_(Commands|SessionPicture)$$' ./internal/command -update-commands -update-pictures

check-generated: ## fail if generated files are not up to date
	.ci/generated

examples: build ## validate and run every example, offline
	.ci/examples $(BIN)/qtype

site: ## build the documentation as a site with search, in bin/site
	.ci/site/build $(BIN)/site

ci: ## run everything that continuous integration runs
	.ci/run

clean:
	rm -rf $(BIN) dist
