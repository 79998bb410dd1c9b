package main

import (
	"cmp"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/internal/remotefs"
)

// temporalFlags are the flags by which runs and workers find each other.
type temporalFlags struct {
	durable.Config
	set *pflag.FlagSet
}

// addTo adds the flags of the connection. The defaults are the environment variables that
// other programs of Temporal read.
func (f *temporalFlags) addTo(set *pflag.FlagSet) {
	f.set = set
	set.StringVar(&f.Address, "temporal-address", cmp.Or(os.Getenv("TEMPORAL_ADDRESS"), durable.DefaultAddress), "`HOST:PORT` of Temporal")
	set.StringVar(&f.Namespace, "temporal-namespace", cmp.Or(os.Getenv("TEMPORAL_NAMESPACE"), durable.DefaultNamespace), "`NAMESPACE` of Temporal")
}

// addBlobsTo adds the flag of the place for large values.
func (f *temporalFlags) addBlobsTo(set *pflag.FlagSet) {
	set.StringVar(&f.Blobs, "blobs", "", "`FOLDER` or address of a bucket for rows and results, the same for runs and workers (default: .qtype/blobs in the folder of the document)")
}

// addRunTo adds the flags of a run.
func (f *temporalFlags) addRunTo(set *pflag.FlagSet) {
	f.addTo(set)
	f.addBlobsTo(set)
	set.IntVar(&f.Chunk, "chunk", durable.DefaultChunk, "with --engine temporal, give a worker at most `N` rows at once")
	set.DurationVar(&f.Heartbeat, "heartbeat", durable.DefaultHeartbeat, "with --engine temporal, give the rows of a worker that was silent for this `TIME` to another one")
}

// names returns the names of the flags that only concern Temporal.
func (f *temporalFlags) names() []string {
	return []string{"temporal-address", "temporal-namespace", "blobs", "chunk", "heartbeat"}
}

// check rejects values that make no sense, and flags that have no effect with another engine.
func (f *temporalFlags) check(isUsed bool) error {
	for _, name := range f.names() {
		if flag := f.set.Lookup(name); !isUsed && flag != nil && flag.Changed {
			return usagef("--%s requires --engine temporal", name)
		}
	}
	switch {
	case !isUsed:
		return nil
	case f.Chunk < 1:
		return usagef("--chunk cannot be %d: expected a positive number of rows", f.Chunk)
	case f.Heartbeat < time.Second:
		return usagef("--heartbeat cannot be %s: expected at least 1s", f.Heartbeat)
	}
	return nil
}

// at completes the configuration for a document.
func (f *temporalFlags) at(document string) durable.Config {
	cfg := f.Config
	if cfg.Blobs == "" {
		folder := "."
		if _, remote := remotefs.Remote(document); !remote {
			folder = filepath.Dir(remotefs.Path(document))
		}
		cfg.Blobs = filepath.Join(folder, ".qtype", "blobs")
	}
	if _, remote := remotefs.Remote(cfg.Blobs); !remote {
		if full, err := filepath.Abs(remotefs.Path(cfg.Blobs)); err == nil {
			cfg.Blobs = full
		}
	}
	return cfg
}

// checkEngine rejects flags that an engine does not have.
func (r *runCommand) checkEngine() error {
	isTemporal := r.engine.value == "temporal"
	if err := r.temporal.check(isTemporal); err != nil || !isTemporal {
		return err
	}
	if r.suspend.file != "" {
		return usagef("--suspend is not available with --engine temporal")
	}
	for _, name := range []string{"client-tool", "approve", "store"} {
		if r.flags.Lookup(name).Changed {
			return usagef("--%s is a flag of qtype worker with --engine temporal: workers run the rows", name)
		}
	}
	return nil
}

// openEngine sets the engine of the run; that of this process needs none.
func (r *runCommand) openEngine(document string) (err error) {
	if r.engine.value == "temporal" {
		r.Engine, err = durable.NewEngine(r.temporal.at(document))
	}
	return err
}
