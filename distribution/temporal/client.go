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
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/workflow"

	"github.com/qtype-dev/qtype/internal/checkpoint"
	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/spec"
)

// dial connects to Temporal.
func dial(ctx context.Context, cfg durable.Config) (client.Client, error) {
	return dialMeasured(ctx, cfg, nil, nil)
}

// dialMeasured is dial, with the metrics of the client in a registry; nil for none.
func dialMeasured(ctx context.Context, cfg durable.Config, out io.Writer, registry prometheus.Registerer) (client.Client, error) {
	handler := slog.DiscardHandler
	if out != nil {
		handler = slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelWarn})
	}
	options := client.Options{HostPort: cfg.Address, Namespace: cfg.Namespace, Logger: log.NewStructuredLogger(slog.New(handler)),
		DataConverter: dataConverter(cfg), FailureConverter: failureConverter(cfg), ContextPropagators: []workflow.ContextPropagator{tracing{}}}
	if cfg.TLS != nil {
		secure, err := loadTLS(cfg.TLS)
		if err != nil {
			return nil, err
		}
		options.ConnectionOptions.TLS = secure
	}
	switch {
	case cfg.APIKeyFile != "":
		options.Credentials = client.NewAPIKeyDynamicCredentials(func(context.Context) (string, error) {
			text, err := os.ReadFile(cfg.APIKeyFile)
			return strings.TrimSpace(string(text)), err
		})
	case cfg.APIKey != "":
		options.Credentials = client.NewAPIKeyStaticCredentials(cfg.APIKey)
	}
	if registry != nil {
		options.MetricsHandler = newMetrics(registry)
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
	load := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { // each connection has the newest one
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, fmt.Errorf("the certificate of the client cannot be used: %w", err)
		}
		return &pair, nil
	}
	cfg.GetClientCertificate = load
	_, err := load(nil)
	return cfg, err
}

// queueOf returns the task queue of a flow. Its name has a digest of what the flow and all that it uses do, and the
// id of the key: workers for which the flow has another meaning, or that have another key, have another queue. Addresses of
// databases and variables of programs may come from the environment, which workers have their own of.
func queueOf(app *spec.Application, flow *spec.Flow, s *sealer) string {
	digest := checkpoint.Sum(checkpoint.Fingerprint(flow, checkpoint.FingerprintOptions{Ignore: []string{"connection", "env", "ui"}}))
	sum := sha256.Sum256(fmt.Appendf(nil, "%d;%s;%q=%x;", formatVersion, s.id(), flow.ID, digest))
	return strings.Join([]string{"qtype", app.ID, flow.ID, hex.EncodeToString(sum[:8])}, "-")
}

// requestQueue returns the task queue for the requests of servers that have the flow with a queue. It is a queue of its own, because a
// worker runs many requests at once, whose rows wait for models, but few chunks of files.
func requestQueue(queue string) string { return queue + "-requests" }

// pollTime is how long the newest poll of a worker may be ago: the server ends a poll after a minute.
const pollTime = 90 * time.Second

// isUnserved reports whether no worker polls a task queue. The server lists workers that have ended for some minutes.
func isUnserved(ctx context.Context, c client.Client, queue string) bool {
	found, err := c.DescribeTaskQueue(ctx, queue, enums.TASK_QUEUE_TYPE_WORKFLOW)
	return err == nil && !slices.ContainsFunc(found.GetPollers(), func(p *taskqueuepb.PollerInfo) bool {
		return time.Since(p.GetLastAccessTime().AsTime()) < pollTime
	})
}

// isNotFound reports whether Temporal does not know a workflow.
func isNotFound(err error) bool {
	var unknown *serviceerror.NotFound
	return errors.As(err, &unknown)
}

// isCanceled reports whether somebody has canceled a run of a workflow, which may go on nevertheless.
func isCanceled(ctx context.Context, c client.Client, id, run string) bool {
	found, err := c.DescribeWorkflowExecution(ctx, id, run)
	return err == nil && found.GetWorkflowExtendedInfo().GetCancelRequested()
}

// isAway reports whether Temporal has not answered, or is busy.
func isAway(err error) bool {
	var (
		unavailable *serviceerror.Unavailable
		late        *serviceerror.DeadlineExceeded
		exhausted   *serviceerror.ResourceExhausted
	)
	return errors.As(err, &unavailable) || errors.As(err, &late) || errors.As(err, &exhausted) || errors.Is(err, context.DeadlineExceeded)
}
