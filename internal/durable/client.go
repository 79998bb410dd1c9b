//go:build temporal

package durable

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/qtype-dev/qtype/internal/checkpoint"
	"github.com/qtype-dev/qtype/runtime"
)

// dial connects to Temporal.
func dial(ctx context.Context, cfg Config, out io.Writer) (client.Client, error) {
	handler := slog.DiscardHandler
	if out != nil {
		handler = slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelWarn})
	}
	c, err := client.DialContext(ctx, client.Options{HostPort: cfg.Address, Namespace: cfg.Namespace, Logger: log.NewStructuredLogger(slog.New(handler))})
	if err != nil {
		return nil, fmt.Errorf("no answer from Temporal at %s: %w; pass its address with --temporal-address", cfg.Address, err)
	}
	return c, nil
}

// queueOf returns the task queue of an application. Its name has a digest of the document:
// workers that have another document, or another version of it, have another queue.
func queueOf(app *runtime.App) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%d;", formatVersion)
	for _, flow := range app.Spec().Flows {
		digest := checkpoint.Sum(checkpoint.Fingerprint(flow, checkpoint.FingerprintOptions{}))
		fmt.Fprintf(sum, "%q=%x;", flow.ID, digest)
	}
	return fmt.Sprintf("qtype-%s-%s", app.Spec().ID, hex.EncodeToString(sum.Sum(nil)[:8]))
}

// isNotFound reports whether Temporal does not know a workflow.
func isNotFound(err error) bool {
	var unknown *serviceerror.NotFound
	return errors.As(err, &unknown)
}
