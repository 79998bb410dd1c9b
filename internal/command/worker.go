package command

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/cli/appflags"
	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/internal/terminal"
)

// The defaults of a worker.
const (
	defaultParallel = 4                // chunks that it runs at once
	defaultDrain    = 30 * time.Second // for what has begun, after a signal; also of a server
)

// workerCommand is one call of qtype worker.
type workerCommand struct {
	*cli.Streams
	temporal appflags.Temporal
	clients  *appflags.Clients
	store    appflags.Store
	parallel int
	drain    time.Duration
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
  qtype run app.qtype.yaml -I messages.csv -o replies.parquet --engine temporal --temporal-address temporal:7233 --blobs /mnt/shared/blobs`,
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
		f.DurationVar(&w.drain, "drain-timeout", defaultDrain, "how long calls of models and tools may take after a signal, as a `DURATION`")
	})
	cli.AddFlags(f, "Conversations", func() { w.store.AddTo(f) })
	cli.AddFlags(f, "Tools and approvals", func() { w.clients.AddTo(f) })
	cli.AddFlags(f, "Messages", func() { w.log.AddTo(c, "print failures and warnings only") })
	cli.GroupHelp(c)
	return c
}

func (w *workerCommand) run(ctx context.Context, path string) (err error) {
	if w.parallel < 1 {
		return terminal.Usagef("--parallel cannot be %d: expected a positive number of chunks", w.parallel)
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
	cfg := durable.WorkerConfig{Config: connection, Parallel: w.parallel, Drain: w.drain, Approved: w.clients.User.Approved, ClientTools: w.clients.Handled, Log: w.Err, Ready: func(queues []string) {
		if !w.log.Quiet {
			fmt.Fprintln(w.Err, terminal.Clean("worker of "+app.Spec().ID+", task queues "+strings.Join(queues, ", ")))
		}
	}}
	if w.log.Quiet {
		cfg.Log = io.Discard
	}
	return engine.Work(w.clients.Audit.Context(ctx), app, cfg)
}
