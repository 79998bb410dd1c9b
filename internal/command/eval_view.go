package command

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/eval/evalrun"
	"github.com/qtype-dev/qtype/internal/eval/evalview"
	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/internal/terminal"
)

// evalViewCommand is one call of qtype eval view.
type evalViewCommand struct {
	*cli.Streams
	annotations string
	html        string
	port        int
}

func newEvalView(s *cli.Streams) *cobra.Command {
	v := &evalViewCommand{Streams: s}
	c := &cobra.Command{
		Use:   "view REPORT...",
		Short: "Show a report in the browser, and annotate its results",
		Long: `Serves the newest of some reports as a page, on this computer only, until it is interrupted.
The others are its trend, and the answers of the one before are compared. Annotations
are kept in a file, which judge-check reads.`,
		Example: `  qtype eval view report.json
  qtype eval view reports/*.json --html trend.html`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return terminal.Usagef("expected a report: qtype eval view report.json; eval -o writes one")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return v.run(c.Context(), args) },
	}
	f := c.Flags()
	f.StringVar(&v.annotations, "annotations", "", "keep annotations in `FILE`, JSON lines (default: REPORT with .annotations.jsonl in place of .json)")
	f.StringVar(&v.html, "html", "", "write the page to `FILE` in place of serving it")
	f.IntVar(&v.port, "port", 0, "listen on `PORT` of 127.0.0.1 (default: any)")
	return c
}

func (v *evalViewCommand) run(ctx context.Context, paths []string) error {
	const maxPort = 65535
	if v.port < 0 || v.port > maxPort {
		return terminal.Usagef("--port cannot be %d: expected a number from 0 to %d", v.port, maxPort)
	}
	reports := make([]*evalrun.Report, len(paths))
	for i, path := range paths {
		var err error
		if reports[i], err = evalrun.ReadReport(path); err != nil {
			return err
		}
	}
	evalrun.SortByTime(reports)
	last := len(reports) - 1
	shown := reports[last]
	if v.annotations == "" {
		v.annotations = strings.TrimSuffix(shown.Path(), ".json") + ".annotations.jsonl"
	}
	p := &evalrun.Page{Report: shown, Earlier: reports[:last]}
	var err error
	if p.Annotations, err = evalrun.ReadAnnotations(v.annotations); err != nil {
		return err
	}
	redacted := redact.From(ctx).String
	if v.html != "" {
		return (&evalrun.Files{HTML: v.html, Redact: redacted}).WritePage(p)
	}
	view, err := evalview.New(p, v.annotations, redacted)
	if err != nil {
		return err
	}
	return view.Serve(ctx, strconv.Itoa(v.port), func(address string) {
		fmt.Fprintf(v.Err, "%s: %s\nannotations are kept in %s\n", terminal.Clean(shown.Path()), address, terminal.Clean(v.annotations))
	})
}
