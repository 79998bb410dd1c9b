package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/internal/terminal"
)

// defaultParallel is how many chunks a worker runs at once.
const defaultParallel = 4

// workerCommand is one call of qtype worker.
type workerCommand struct {
	*streams
	temporal temporalFlags
	clients  *clients
	store    storeFlag
	parallel int
	log      logLevel
}

func newWorker(s *streams) *cobra.Command {
	w := &workerCommand{streams: s, clients: newClients(s)}
	c := &cobra.Command{
		Use:   "worker APP",
		Short: "Run rows for qtype run or qtype serve with --engine temporal",
		Long: `Runs rows that Temporal assigns to it, until it is stopped: those of files, from
qtype run --engine temporal, and those of requests, from qtype serve --engine temporal.
A worker runs only rows of the document that it was started with. The programs use the
same --blobs, and workers and servers the same --store.`,
		Example: `  qtype worker app.qtype.yaml --temporal-address temporal:7233 --blobs /mnt/shared/blobs
  qtype run app.qtype.yaml -I messages.csv -o replies.parquet --engine temporal --temporal-address temporal:7233 --blobs /mnt/shared/blobs`,
		Args: arguments("a document: qtype worker APP"), ValidArgsFunction: yamlFiles,
		RunE: func(c *cobra.Command, args []string) error {
			if err := w.log.check(c); err != nil {
				return err
			}
			return w.run(w.log.context(c.Context(), s), args[0])
		},
	}
	f := c.Flags()
	f.SortFlags = false
	addFlags(f, "Rows", func() {
		w.temporal.addTo(f)
		w.temporal.addBlobsTo(f)
		f.IntVar(&w.parallel, "parallel", defaultParallel, "run `N` chunks of rows at once")
	})
	addFlags(f, "Conversations", func() { w.store.addTo(f) })
	addFlags(f, "Tools and approvals", func() { w.clients.flags(f) })
	addFlags(f, "Messages", func() { w.log.addTo(c, "print failures and warnings only") })
	groupHelp(c)
	return c
}

func (w *workerCommand) run(ctx context.Context, path string) (err error) {
	if w.parallel < 1 {
		return usagef("--parallel cannot be %d: expected a positive number of chunks", w.parallel)
	}
	p, list := qtype.Check(ctx, path, qtype.WithStrict())
	if err := list.Err(); err != nil {
		return err
	}
	if w.log.warnings() {
		w.printWarnings(path, list)
	}
	app, err := w.newApp(p, w.clients, &w.store, false, &w.log)
	if err != nil {
		return err
	}
	defer closeApp(ctx, app, &err)
	ctx, sendTraces := w.startTraces(ctx, app, &w.log)
	defer sendTraces()
	connection, err := w.temporal.at(path)
	if err != nil {
		return err
	}
	cfg := durable.WorkerConfig{Config: connection, Parallel: w.parallel, Approved: w.clients.user.Approved, ClientTools: w.clients.handled, Log: w.Err, Ready: func(queue string) {
		if !w.log.quiet {
			fmt.Fprintln(w.Err, terminal.Clean("worker of "+app.Spec().ID+", task queue "+queue))
		}
	}}
	if w.log.quiet {
		cfg.Log = io.Discard
	}
	return durable.Work(w.clients.audit.context(ctx), app, cfg)
}
