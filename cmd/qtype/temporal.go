package main

import (
	"cmp"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/memory/encrypted"
)

// temporalFlags are the flags by which runs and workers find each other.
type temporalFlags struct {
	durable.Config
	set     *pflag.FlagSet
	secure  bool // connect with TLS
	tls     durable.TLS
	keyFile string
}

// addTo adds the flags of the connection. The defaults are the environment variables that
// other programs of Temporal read.
func (f *temporalFlags) addTo(set *pflag.FlagSet) {
	f.set = set
	set.StringVar(&f.Address, "temporal-address", cmp.Or(os.Getenv("TEMPORAL_ADDRESS"), durable.DefaultAddress), "`HOST:PORT` of Temporal")
	set.StringVar(&f.Namespace, "temporal-namespace", cmp.Or(os.Getenv("TEMPORAL_NAMESPACE"), durable.DefaultNamespace), "`NAMESPACE` of Temporal")
	f.addSecurityTo(set)
}

// addSecurityTo adds the flags of TLS and encryption. The API key has none, because other users see
// the arguments of programs.
func (f *temporalFlags) addSecurityTo(set *pflag.FlagSet) {
	set.BoolVar(&f.secure, "temporal-tls", os.Getenv("TEMPORAL_TLS") == "true", "connect to Temporal with TLS; implied by the other flags of TLS, and by TEMPORAL_API_KEY")
	set.StringVar(&f.tls.CA, "temporal-tls-ca", os.Getenv("TEMPORAL_TLS_SERVER_CA_CERT_PATH"), "`FILE` with the certificates that sign that of Temporal (default: those of the system)")
	set.StringVar(&f.tls.Cert, "temporal-tls-cert", os.Getenv("TEMPORAL_TLS_CLIENT_CERT_PATH"), "`FILE` with the certificate of this client")
	set.StringVar(&f.tls.Key, "temporal-tls-key", os.Getenv("TEMPORAL_TLS_CLIENT_KEY_PATH"), "`FILE` with its private key")
	set.StringVar(&f.tls.ServerName, "temporal-tls-server-name", os.Getenv("TEMPORAL_TLS_SERVER_NAME"), "`NAME` that the certificate of Temporal must have (default: the host of the address)")
	set.StringVar(&f.keyFile, "temporal-key-file", os.Getenv("QTYPE_TEMPORAL_KEY_FILE"), "encrypt what Temporal and --blobs have with the key in `FILE` (32 random bytes in base64); more lines are former keys")
}

// security returns the configuration with TLS, the API key and the keys.
func (f *temporalFlags) security(cfg durable.Config) (durable.Config, error) {
	cfg.APIKey = os.Getenv("TEMPORAL_API_KEY")
	if (f.tls.Cert == "") != (f.tls.Key == "") {
		return cfg, usagef("--temporal-tls-cert and --temporal-tls-key require each other")
	}
	if f.secure || f.tls != (durable.TLS{}) || cfg.APIKey != "" {
		cfg.TLS = &f.tls
	}
	if f.keyFile == "" {
		return cfg, nil
	}
	text, err := os.ReadFile(f.keyFile)
	if err != nil {
		return cfg, usagef("--temporal-key-file: %s", err)
	}
	if cfg.Keys, err = encrypted.ParseKeys(string(text)); err != nil {
		return cfg, usagef("--temporal-key-file: %s: %s", f.keyFile, err)
	}
	return cfg, nil
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
	f.addHeartbeatTo(set)
}

// addServeTo adds the flags of a server.
func (f *temporalFlags) addServeTo(set *pflag.FlagSet) {
	f.addTo(set)
	f.addBlobsTo(set)
	f.Chunk = durable.DefaultChunk
	f.addHeartbeatTo(set)
}

// addHeartbeatTo adds the flag of the time after which a worker counts as dead.
func (f *temporalFlags) addHeartbeatTo(set *pflag.FlagSet) {
	set.DurationVar(&f.Heartbeat, "heartbeat", durable.DefaultHeartbeat, "with --engine temporal, give the rows of a worker that was silent for this `TIME` to another one")
}

// names returns the names of the flags that only concern Temporal.
func (f *temporalFlags) names() []string {
	return []string{"temporal-address", "temporal-namespace", "temporal-tls", "temporal-tls-ca", "temporal-tls-cert", "temporal-tls-key",
		"temporal-tls-server-name", "temporal-key-file", "blobs", "chunk", "heartbeat"}
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
func (f *temporalFlags) at(document string) (durable.Config, error) {
	cfg, err := f.security(f.Config)
	if err != nil {
		return cfg, err
	}
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
	return cfg, nil
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
	if r.engine.value != "temporal" {
		return nil
	}
	cfg, err := r.temporal.at(document)
	if err == nil {
		r.Engine, err = durable.NewEngine(cfg)
	}
	return err
}
