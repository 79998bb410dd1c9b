package appflags

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/clienttool"
	"github.com/qtype-dev/qtype/internal/subprocess"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/spec"
)

// Clients are the flags by which programs or the user answer for the caller of a flow.
type Clients struct {
	Handled    []string // ids of the client tools that programs answer; set by Options
	User       clienttool.User
	Suspension *clienttool.Suspension // approvals by other processes; nil for none
	Audit      Audit

	mocks      []string               // TOOL=RESULT
	programs   []string               // NAME=COMMAND
	supervisor *subprocess.Supervisor // starts the programs; nil for none
}

// NewClients returns the flags of a command with these streams.
func NewClients(s *cli.Streams) *Clients {
	return &Clients{User: clienttool.User{Streams: &s.Streams}, supervisor: s.Supervisor}
}

// AddTo adds the flags.
func (c *Clients) AddTo(f *pflag.FlagSet) {
	f.StringArrayVar(&c.programs, "client-tool", nil, "answer ClientTool `NAME` with COMMAND (NAME=COMMAND), which reads JSON arguments on stdin and writes JSON to stdout (repeatable)")
	f.StringArrayVar(&c.User.Approved, "approve", nil, "approve all calls of `TOOL` (repeatable)")
	c.AddMocksTo(f)
	c.Audit.AddTo(f)
}

// AddDenyTo adds --deny to the flags of a command that runs rows in this process.
func (c *Clients) AddDenyTo(f *pflag.FlagSet) {
	f.BoolVar(&c.User.Deny, "deny", false, "reject calls that need an approval, without a question, unless --approve names their tool")
}

// AddMocksTo adds the flag of the results that replace calls of tools.
func (c *Clients) AddMocksTo(f *pflag.FlagSet) {
	f.StringArrayVar(&c.mocks, "mock-tool", nil, "do not call `TOOL`: its result is RESULT, as JSON or text (TOOL=RESULT, repeatable)")
}

// Given reports whether one of the flags is set.
func (c *Clients) Given() bool {
	return len(c.programs)+len(c.mocks) > 0 || len(c.User.Approved) > 0 || c.Audit.File != ""
}

// Prompt lets the user answer at the terminal.
func (c *Clients) Prompt(lines *terminal.Lines) { c.User.Lines = lines }

// Options returns the options of an application that the clients answer for.
func (c *Clients) Options(app *spec.Application) ([]qtype.Option, error) {
	if app == nil {
		return nil, nil // qtype.New returns an error
	}
	opts, err := c.Audit.Options()
	if err != nil {
		return nil, err
	}
	mocks, err := c.toolMocks(app)
	if err != nil {
		return nil, err
	}
	opts = append(opts, qtype.WithToolMocks(mocks...))
	for _, given := range c.programs {
		name, line, ok := strings.Cut(given, "=")
		if !ok || name == "" || line == "" {
			return nil, terminal.Usagef("--client-tool cannot be %q: expected NAME=COMMAND", given)
		}
		id, handler, err := clienttool.Program(app, name, line, c.supervisor)
		if err != nil {
			return nil, terminal.Usagef("--client-tool %s: %s", name, err)
		}
		opts, c.Handled = append(opts, qtype.WithClientTool(id, handler)), append(c.Handled, id)
	}
	for _, id := range c.User.Approved {
		if err := clienttool.CheckTool(app, id); err != nil {
			return nil, terminal.Usagef("--approve %s: %s", id, err)
		}
	}
	if c.User.Lines != nil {
		opts = append(opts, qtype.WithClientTool("", c.User.Handle))
	}
	if c.Suspension != nil {
		return append(opts, qtype.WithApproval(c.Suspension.Approve)), nil
	}
	if c.User.Lines != nil || len(c.User.Approved) > 0 || c.User.Deny {
		opts = append(opts, qtype.WithApproval(c.User.Approve))
	}
	return opts, nil
}

// toolMocks returns the results that replace calls of tools.
func (c *Clients) toolMocks(app *spec.Application) ([]*spec.ToolMock, error) {
	var mocks []*spec.ToolMock
	for _, given := range c.mocks {
		id, text, ok := strings.Cut(given, "=")
		if !ok || id == "" {
			return nil, terminal.Usagef("--mock-tool cannot be %q: expected TOOL=RESULT", given)
		}
		m, err := clienttool.Mock(app, id, text)
		if err != nil {
			return nil, terminal.Usagef("--mock-tool %s: %s", id, err)
		}
		mocks = append(mocks, m)
	}
	return mocks, nil
}
