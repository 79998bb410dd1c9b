package appflags

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/internal/memory/encrypted"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/trust"
)

// Temporal are the flags by which runs and workers find each other.
type Temporal struct {
	durable.Config
	set     *pflag.FlagSet
	secure  bool // connect with TLS
	tls     durable.TLS
	keyFile string
}

// AddTo adds the flags of the connection. The defaults are the environment variables that
// other programs of Temporal read.
func (f *Temporal) AddTo(set *pflag.FlagSet) {
	f.set = set
	set.StringVar(&f.Address, "temporal-address", cmp.Or(os.Getenv("TEMPORAL_ADDRESS"), durable.DefaultAddress), "`HOST:PORT` of Temporal")
	set.StringVar(&f.Namespace, "temporal-namespace", cmp.Or(os.Getenv("TEMPORAL_NAMESPACE"), durable.DefaultNamespace), "`NAMESPACE` of Temporal")
	f.addSecurityTo(set)
}

// addSecurityTo adds the flags of TLS and encryption. The API key has none, because other users see
// the arguments of programs.
func (f *Temporal) addSecurityTo(set *pflag.FlagSet) {
	set.BoolVar(&f.secure, "temporal-tls", os.Getenv("TEMPORAL_TLS") == "true", "connect to Temporal with TLS; implied by the other flags of TLS, and by TEMPORAL_API_KEY")
	set.StringVar(&f.tls.CA, "temporal-tls-ca", os.Getenv("TEMPORAL_TLS_SERVER_CA_CERT_PATH"), "`FILE` with the certificates that sign that of Temporal (default: those of the system)")
	set.StringVar(&f.tls.Cert, "temporal-tls-cert", os.Getenv("TEMPORAL_TLS_CLIENT_CERT_PATH"), "`FILE` with the certificate of this client")
	set.StringVar(&f.tls.Key, "temporal-tls-key", os.Getenv("TEMPORAL_TLS_CLIENT_KEY_PATH"), "`FILE` with its private key")
	set.StringVar(&f.tls.ServerName, "temporal-tls-server-name", os.Getenv("TEMPORAL_TLS_SERVER_NAME"), "`NAME` that the certificate of Temporal must have (default: the host of the address)")
	set.StringVar(&f.APIKeyFile, "temporal-api-key-file", os.Getenv("TEMPORAL_API_KEY_FILE"),
		"`FILE` with the API key of Temporal, which may be replaced while the program runs (default: TEMPORAL_API_KEY)")
	set.StringVar(&f.keyFile, "temporal-key-file", os.Getenv("QTYPE_TEMPORAL_KEY_FILE"), "encrypt what Temporal and --blobs have with the key in `FILE` (32 random bytes in base64); more lines are former keys")
}

// Connection returns the configuration with TLS, the API key and the keys.
func (f *Temporal) Connection() (durable.Config, error) {
	cfg := f.Config
	cfg.APIKey = os.Getenv("TEMPORAL_API_KEY")
	if (f.tls.Cert == "") != (f.tls.Key == "") {
		return cfg, terminal.Usagef("--temporal-tls-cert and --temporal-tls-key require each other")
	}
	if f.secure || f.tls != (durable.TLS{}) || cfg.APIKey != "" || cfg.APIKeyFile != "" {
		cfg.TLS = &f.tls
	}
	if f.keyFile == "" {
		return cfg, nil
	}
	text, err := os.ReadFile(f.keyFile)
	if err != nil {
		return cfg, terminal.Usagef("--temporal-key-file: %s", err)
	}
	if cfg.Keys, err = encrypted.ParseKeys(string(text)); err != nil {
		return cfg, terminal.Usagef("--temporal-key-file: %s: %s", f.keyFile, err)
	}
	return cfg, nil
}

// AddBlobsTo adds the flag of the place for large values.
func (f *Temporal) AddBlobsTo(set *pflag.FlagSet) {
	set.StringVar(&f.Blobs, "blobs", "", "`FOLDER` or address of a bucket for rows and results, the same for runs and workers (default: .qtype/blobs in the folder of the document)")
}

// AddRunTo adds the flags of a run.
func (f *Temporal) AddRunTo(set *pflag.FlagSet) {
	f.AddTo(set)
	f.AddBlobsTo(set)
	set.IntVar(&f.Chunk, "chunk", durable.DefaultChunk, "with --engine temporal, give a worker at most `N` rows at once")
	f.addStartTo(set)
}

// AddServeTo adds the flags of a server.
func (f *Temporal) AddServeTo(set *pflag.FlagSet) {
	f.AddTo(set)
	f.AddBlobsTo(set)
	f.Chunk = durable.DefaultChunk
	f.addStartTo(set)
}

// addStartTo adds the flags of what starts workflows: after which time a worker counts as dead, and what Temporal shows.
func (f *Temporal) addStartTo(set *pflag.FlagSet) {
	set.BoolVar(&f.NameOwners, "temporal-names", false, "let Temporal show the ids of sessions and users, not their hashes")
	set.DurationVar(&f.Heartbeat, "heartbeat", durable.DefaultHeartbeat, "with --engine temporal, give the rows of a worker that was silent for this `TIME` to another one")
}

// names returns the names of the flags that only concern Temporal.
func (f *Temporal) names() []string {
	return []string{"temporal-address", "temporal-namespace", "temporal-tls", "temporal-tls-ca", "temporal-tls-cert", "temporal-tls-key",
		"temporal-tls-server-name", "temporal-api-key-file", "temporal-key-file", "temporal-names", "blobs", "chunk", "heartbeat"}
}

// Given reports whether one of the flags is set.
func (f *Temporal) Given() bool { return slices.ContainsFunc(f.names(), f.set.Changed) }

// Check rejects values that make no sense, and flags that have no effect with another engine.
func (f *Temporal) Check(isUsed bool) error {
	for _, name := range f.names() {
		if flag := f.set.Lookup(name); !isUsed && flag != nil && flag.Changed {
			return terminal.Usagef("--%s requires --engine temporal", name)
		}
	}
	switch {
	case !isUsed:
		return nil
	case f.Chunk < 1:
		return terminal.Usagef("--chunk cannot be %d: expected a positive number of rows", f.Chunk)
	case f.Heartbeat < time.Second:
		return terminal.Usagef("--heartbeat cannot be %s: expected at least 1s", f.Heartbeat)
	}
	return nil
}

// At completes the configuration for a document.
func (f *Temporal) At(document string) (durable.Config, error) {
	cfg, err := f.Connection()
	if err != nil {
		return cfg, err
	}
	if cfg.Blobs == "" {
		folder := "."
		if _, remote := remotefs.Remote(document); !remote {
			folder = filepath.Dir(remotefs.Path(document))
		}
		cfg.Blobs = filepath.Join(folder, ".qtype", "blobs")
		if !trust.IsWithin(folder, cfg.Blobs) {
			return cfg, fmt.Errorf("%s is, or is in, a symbolic link that leaves the folder of the document: name the folder with --blobs", cfg.Blobs)
		}
	}
	if _, remote := remotefs.Remote(cfg.Blobs); !remote {
		if full, err := filepath.Abs(remotefs.Path(cfg.Blobs)); err == nil {
			cfg.Blobs = full
		}
	}
	return cfg, nil
}
