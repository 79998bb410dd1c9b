package command

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/traceview"
	"github.com/qtype-dev/qtype/runtime"
)

// traceFlag is the flag --trace.
type traceFlag struct{ value string }

// traceTerminal is the value of --trace without a file.
const traceTerminal = "true"

// String returns the value.
func (t *traceFlag) String() string { return t.value }

// Set sets the value.
func (t *traceFlag) Set(v string) error {
	t.value = v
	return nil
}

// Type is the type of a flag without a value, so that help does not show the default.
func (t *traceFlag) Type() string { return "bool" }

func (t *traceFlag) addTo(f *pflag.FlagSet) {
	f.Var(t, "trace", "show steps, prompts, calls of tools, tokens and times on standard error, or write them to `FILE` (.jsonl .html)")
	f.Lookup("trace").NoOptDefVal = traceTerminal
}

// check rejects a file in another format, or one that is used otherwise.
func (t *traceFlag) check(others ...string) error {
	if t.value == "" || t.value == traceTerminal {
		return nil
	}
	if err := traceview.CheckPath(t.value); err != nil {
		return terminal.Usagef("--trace %s", err)
	}
	for _, other := range others {
		if remotefs.IsSame(t.value, other) {
			return terminal.Usagef("--trace %s is another file of this command: use another name", t.value)
		}
	}
	return nil
}

// open starts the trace of a command; nil without --trace.
func (t *traceFlag) open(s *cli.Streams, redactor *redact.Redactor, unit, title string) (*traceview.Trace, error) {
	if t.value == "" {
		return nil, nil
	}
	o := traceview.Options{Unit: unit, Title: title, Streams: &s.Streams, Redactor: redactor}
	if t.value != traceTerminal {
		o.Path = t.value
	}
	return traceview.New(o)
}

// start is open for the runs of an application. The returned function completes the
// trace and must be called at the end; the error of the command has precedence.
func (t *traceFlag) start(ctx context.Context, s *cli.Streams, app *runtime.App, unit string) (context.Context, *traceview.Trace, func(*error), error) {
	trace, err := t.open(s, app.Redactor(), unit, app.Spec().ID)
	if err != nil {
		return ctx, nil, nil, err
	}
	return trace.Context(ctx), trace, func(err *error) { closeTrace(trace, err) }, nil
}

func closeTrace(trace *traceview.Trace, err *error) {
	if closing := trace.Close(); *err == nil {
		*err = closing
	}
}

// joinTrace lets the file of --trace be a separate word, although the flag needs none.
func joinTrace(args []string) []string {
	var joined []string
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			return append(joined, args[i:]...)
		}
		if args[i] == "--trace" && i+1 < len(args) && traceview.IsPath(args[i+1]) {
			joined = append(joined, "--trace="+args[i+1])
			i++
			continue
		}
		joined = append(joined, args[i])
	}
	return joined
}
