package temporal

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/qtype-dev/qtype/internal/checkpoint"
	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/runtime"
)

// dial connects to Temporal.
func dial(ctx context.Context, cfg durable.Config, out io.Writer) (client.Client, error) {
	handler := slog.DiscardHandler
	if out != nil {
		handler = slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelWarn})
	}
	options := client.Options{HostPort: cfg.Address, Namespace: cfg.Namespace, Logger: log.NewStructuredLogger(slog.New(handler)),
		DataConverter: dataConverter(cfg), FailureConverter: failureConverter(cfg)}
	if cfg.TLS != nil {
		secure, err := loadTLS(cfg.TLS)
		if err != nil {
			return nil, err
		}
		options.ConnectionOptions.TLS = secure
	}
	if cfg.APIKey != "" {
		options.Credentials = client.NewAPIKeyStaticCredentials(cfg.APIKey)
	}
	c, err := client.DialContext(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("no answer from Temporal at %s: %w; pass its address with --temporal-address", cfg.Address, err)
	}
	return c, nil
}

// loadTLS reads the files of a configuration.
func loadTLS(t *durable.TLS) (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CA != "" {
		text, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("the certificates of authorities cannot be read: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s has no certificate in PEM format", t.CA)
		}
	}
	if t.Cert == "" {
		return cfg, nil
	}
	pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return nil, fmt.Errorf("the certificate of the client cannot be used: %w", err)
	}
	cfg.Certificates = []tls.Certificate{pair}
	return cfg, nil
}

// queueOf returns the task queue of an application. Its name has a digest of the document and the
// id of the key: workers that have another document, another version of it, or another key
// have another queue. Addresses of databases and variables of programs may come from the environment,
// which workers have their own of.
func queueOf(app *runtime.App, s *sealer) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%d;%s;", formatVersion, s.id())
	for _, flow := range app.Spec().Flows {
		digest := checkpoint.Sum(checkpoint.Fingerprint(flow, checkpoint.FingerprintOptions{Ignore: []string{"connection", "env"}}))
		fmt.Fprintf(sum, "%q=%x;", flow.ID, digest)
	}
	return fmt.Sprintf("qtype-%s-%s", app.Spec().ID, hex.EncodeToString(sum.Sum(nil)[:8]))
}

// isNotFound reports whether Temporal does not know a workflow.
func isNotFound(err error) bool {
	var unknown *serviceerror.NotFound
	return errors.As(err, &unknown)
}
