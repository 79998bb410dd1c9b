package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/distribution/temporal"
	"github.com/qtype-dev/qtype/internal/command/commandtest"
	"github.com/qtype-dev/qtype/internal/parts"
	"github.com/qtype-dev/qtype/internal/sqlquery"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/spec"
)

// engine asks Temporal for the runs of tests.
var engine temporal.Engine

func TestMain(m *testing.M) { testscript.Main(leakless{m}, map[string]func(){"qtype": main}) }

// leakless runs the tests and fails if a goroutine outlives them.
type leakless struct{ tests *testing.M }

func (l leakless) Run() int {
	os.Setenv("SOURCE_DATE_EPOCH", testkit.Day)
	status := l.tests.Run()
	if status != 0 {
		return status
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// TestScripts runs the scripts that need a part of the distribution.
func TestScripts(t *testing.T) {
	commandtest.Run(t, func(string) bool { return true })
}

// The program has a part for all that the language declares.
func TestParts_Complete(t *testing.T) {
	out, err := exec.Command("qtype", "version", "--parts").CombinedOutput()
	testkit.Must(t, err)
	have := map[parts.Kind][]string{}
	for line := range strings.Lines(string(out)) {
		kind := parts.Kind(strings.TrimSpace(line[:15]))
		have[kind] = strings.Fields(line[15:])
	}
	want := map[parts.Kind][]string{
		parts.Store: {"memory", "sqlite", "postgres", "redis"}, parts.Engine: {"local", "temporal"}, parts.Files: {"file", "http", "s3", "gs", "azure"}, parts.Records: {"csv", "tsv", "json", "jsonl", "xlsx", "parquet"}, parts.Telemetry: {"otlp", "metrics"},
	}
	for _, p := range spec.Providers() {
		if p.Client != spec.MissingClient {
			want[parts.Provider] = append(want[parts.Provider], p.Name)
		}
	}
	for _, s := range spec.IndexStores() {
		want[parts.Index] = append(want[parts.Index], s.Name)
	}
	for _, d := range sqlquery.Dialects() {
		want[parts.Database] = append(want[parts.Database], string(d))
	}
	for kind, names := range want {
		if slices.Sort(names); !slices.Equal(have[kind], names) {
			t.Errorf("%s: %v, declared %v", kind, have[kind], names)
		}
	}
}
