package main

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/clienttool"
	"github.com/qtype-dev/qtype/internal/subprocess"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/spec"
)

// clients are the flags by which programs or the user answer for the caller of a flow.
type clients struct {
	programs   []string // NAME=COMMAND
	handled    []string // ids of the client tools that programs answer; set by options
	user       clienttool.User
	suspension *clienttool.Suspension // approvals by other processes; nil for none
	audit      auditFlag
	supervisor *subprocess.Supervisor // starts the programs; nil for none
}

func newClients(s *streams) *clients {
	return &clients{user: clienttool.User{Streams: &s.Streams}, supervisor: s.supervisor}
}

func (c *clients) flags(f *pflag.FlagSet) {
	f.StringArrayVar(&c.programs, "client-tool", nil, "answer ClientTool `NAME` with COMMAND (NAME=COMMAND), which reads JSON arguments on stdin and writes JSON to stdout (repeatable)")
	f.StringArrayVar(&c.user.Approved, "approve", nil, "approve all calls of `TOOL` (repeatable)")
	c.audit.addTo(f)
}

// prompt lets the user answer at the terminal.
func (c *clients) prompt(lines *terminal.Lines) { c.user.Lines = lines }

// options returns the options of an application that the clients answer for.
func (c *clients) options(app *spec.Application) ([]qtype.Option, error) {
	if app == nil {
		return nil, nil // qtype.New returns an error
	}
	opts, err := c.audit.options()
	if err != nil {
		return nil, err
	}
	for _, given := range c.programs {
		name, line, ok := strings.Cut(given, "=")
		if !ok || name == "" || line == "" {
			return nil, usagef("--client-tool cannot be %q: expected NAME=COMMAND", given)
		}
		id, handler, err := clienttool.Program(app, name, line, c.supervisor)
		if err != nil {
			return nil, usagef("--client-tool %s: %s", name, err)
		}
		opts, c.handled = append(opts, qtype.WithClientTool(id, handler)), append(c.handled, id)
	}
	for _, id := range c.user.Approved {
		if err := clienttool.CheckApproved(app, id); err != nil {
			return nil, usagef("--approve %s: %s", id, err)
		}
	}
	if c.user.Lines != nil {
		opts = append(opts, qtype.WithClientTool("", c.user.Handle))
	}
	if c.suspension != nil {
		return append(opts, qtype.WithApproval(c.suspension.Approve)), nil
	}
	if c.user.Lines != nil || len(c.user.Approved) > 0 {
		opts = append(opts, qtype.WithApproval(c.user.Approve))
	}
	return opts, nil
}
