package command

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/cli/appflags"
	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/internal/telemetry"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/waves"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/steps"
)

// The defaults of a worker.
const (
	defaultParallel = 4                // chunks that it runs at once
	defaultRequests = 100              // requests that it runs at once
	defaultDrain    = 30 * time.Second // for what has begun, after a signal; also of a server
)

// workerCommand is one call of qtype worker.
type workerCommand struct {
	*cli.Streams
	temporal appflags.Temporal
	clients  *appflags.Clients
	store    appflags.Store
	parallel int
	requests int
	drain    time.Duration
	metrics  string // the address of its metrics; empty for none
	log      appflags.LogLevel
}

func newWorker(s *cli.Streams) *cobra.Command {
	w := &workerCommand{Streams: s, clients: appflags.NewClients(s)}
	c := &cobra.Command{
		Use:   "worker APP",
		Short: "Run rows for qtype run or qtype serve with --engine temporal",
		Long: `Runs rows that Temporal assigns to it, until it is stopped: those of files, from
qtype run --engine temporal, and those of requests, from qtype serve --engine temporal.
A worker runs only rows of the document that it was started with. The programs use the
same --blobs, and workers and servers the same --store.

A first SIGINT or SIGTERM lets calls of models and tools end, for --drain-timeout at
most, and records them: the worker that continues their rows does not repeat them. A
second one ends the process.`,
		Example: `  qtype worker app.qtype.yaml --temporal-address temporal:7233 --blobs /mnt/shared/blobs
  qtype run app.qtype.yaml -I messages.csv -o replies.jsonl --engine temporal --temporal-address temporal:7233 --blobs /mnt/shared/blobs`,
		Args: cli.Arguments("a document: qtype worker APP"), ValidArgsFunction: cli.YAMLFiles,
		RunE: func(c *cobra.Command, args []string) error {
			if err := w.log.Check(c); err != nil {
				return err
			}
			return w.run(w.log.Context(c.Context(), s), args[0])
		},
	}
	f := c.Flags()
	f.SortFlags = false
	cli.AddFlags(f, "Rows", func() {
		w.temporal.AddTo(f)
		w.temporal.AddBlobsTo(f)
		f.IntVar(&w.parallel, "parallel", defaultParallel, "run `N` chunks of rows at once")
		f.IntVar(&w.requests, "requests", defaultRequests, "run the rows of `N` requests of servers at once, for each flow")
		f.DurationVar(&w.drain, "drain-timeout", defaultDrain, "how long calls of models and tools may take after a signal, as a `DURATION`")
	})
	cli.AddFlags(f, "Conversations", func() { w.store.AddTo(f) })
	cli.AddFlags(f, "Tools and approvals", func() { w.clients.AddTo(f) })
	cli.AddFlags(f, "Messages", func() {
		f.StringVar(&w.metrics, "metrics", "", "serve /metrics, /healthz and /readyz at `HOST:PORT`, without authentication")
		w.log.AddTo(c, "print failures and warnings only")
	})
	cli.GroupHelp(c)
	return c
}

func (w *workerCommand) run(ctx context.Context, path string) (err error) {
	if w.parallel < 1 {
		return terminal.Usagef("--parallel cannot be %d: expected a positive number of chunks", w.parallel)
	}
	if w.requests < 1 {
		return terminal.Usagef("--requests cannot be %d: expected a positive number of requests", w.requests)
	}
	p, list := qtype.Check(ctx, path, qtype.WithStrict())
	if err := list.Err(); err != nil {
		return err
	}
	if w.log.Warnings() {
		printWarnings(w.Streams, path, list)
	}
	app, err := newApp(w.Streams, p, w.clients, &w.store, false, &w.log)
	if err != nil {
		return err
	}
	defer appflags.CloseApp(ctx, app, &err)
	ctx, sendTraces := startTraces(ctx, w.Streams, app, &w.log)
	defer sendTraces()
	engine, err := durable.From(ctx)
	if err != nil {
		return err
	}
	connection, err := w.temporal.At(path)
	if err != nil {
		return err
	}
	status, err := startStatus(ctx, w.metrics)
	if err != nil {
		return err
	}
	defer status.close()
	cfg := durable.WorkerConfig{
		Config: connection, Parallel: w.parallel, Requests: w.requests, Drain: w.drain,
		Approved: w.clients.User.Approved, ClientTools: w.clients.Handled, Log: w.Err,
		InWaves: func(ctx context.Context, run *waves.Run) (*runtime.App, error) {
			p, list := qtype.Check(waves.With(ctx, run), path, qtype.WithStrict())
			if err := list.Err(); err != nil {
				return nil, err
			}
			return newApp(w.Streams, p, w.clients, &w.store, false, &w.log)
		},
		Ready: func(queues []string, check func(context.Context) error) {
			status.check.Store(&check)
			if !w.log.Quiet {
				fmt.Fprintln(w.Err, terminal.Clean("worker of "+app.Spec().ID+", task queues "+strings.Join(queues, ", ")))
			}
		},
	}
	if w.metrics != "" {
		cfg.Metrics = status.metrics
		ctx = steps.WithObserver(ctx, status.metrics)
	}
	if w.log.Quiet {
		cfg.Log = io.Discard
	}
	return engine.Work(w.clients.Audit.Context(ctx), app, cfg)
}

// workerStatus is what a worker tells Kubernetes and Prometheus.
type workerStatus struct {
	metrics telemetry.Metrics                           // nil without an address
	check   atomic.Pointer[func(context.Context) error] // whether Temporal answers; nil before the worker polls
	server  *http.Server                                // nil for none
}

// startStatus serves the status at an address; at none if that is empty.
func startStatus(ctx context.Context, address string) (*workerStatus, error) {
	s := &workerStatus{}
	if address == "" {
		return s, nil
	}
	var err error
	if s.metrics, err = telemetry.PartsOf(ctx).NewMetrics(); err != nil {
		return nil, terminal.Usagef("--metrics: %s", err)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.metrics.Handler())
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if check := s.check.Load(); check == nil || ctx.Err() != nil || (*check)(r.Context()) != nil {
			http.Error(w, "the worker does not take rows", http.StatusServiceUnavailable)
		}
	})
	s.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.server.Serve(l) }() // it ends with close
	return s, nil
}

func (s *workerStatus) close() {
	if s.server != nil {
		_ = s.server.Close()
	}
}
