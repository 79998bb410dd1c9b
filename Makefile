# make            format, vet, lint, test, and generated files with an empty diff
# make help       what there is
SHELL := /bin/bash
GO ?= go
BIN ?= bin
RACE ?=
FUZZTIME ?= 5s
BENCHCOUNT ?= 1

.DEFAULT_GOAL := all
.PHONY: all help build build-cloud install test lint fmt vet bench fuzz generate check-generated examples ci clean

all: fmt vet lint test check-generated

help:
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 20

build: ## the command, static, in bin/
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w" -o $(BIN)/qtype ./cmd/qtype

build-cloud: ## the same with s3://, gs:// and az:// addresses, some 50 MB larger
	CGO_ENABLED=0 $(GO) build -trimpath -tags cloud -ldflags "-s -w" -o $(BIN)/qtype-cloud ./cmd/qtype

install: ## the command, where go puts commands
	$(GO) install ./cmd/qtype

test: ## all tests; RACE=-race with the race detector
	$(GO) test $(RACE) -timeout 30m ./...

lint: ## golangci-lint, pinned in .ci/tools.env
	.ci/lint

fmt: ## formats the code
	gofmt -w $$(git ls-files --cached --others --exclude-standard '*.go')

vet: ## go vet
	$(GO) vet ./...

bench: build ## all benchmarks BENCHCOUNT times, and the time that the command takes to start
	$(GO) test -run '^$$' -bench . -benchmem -count $(BENCHCOUNT) ./...
	.ci/startup $(BIN)/qtype

fuzz: ## every fuzz target for FUZZTIME
	.ci/fuzz $(FUZZTIME)

generate: ## schema.json from package spec, docs/rules.md and docs/diagnostics.md from the rules
	$(GO) generate ./internal/schemagen ./validate/lint

check-generated: ## fails where generated files are not up to date
	.ci/generated

examples: build ## validates and runs every example, offline
	.ci/examples $(BIN)/qtype

ci: ## everything that the continuous integration runs
	.ci/run

clean:
	rm -rf $(BIN) dist
