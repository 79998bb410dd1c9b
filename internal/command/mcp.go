package command

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/authoring"
	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/cli/appflags"
	"github.com/qtype-dev/qtype/internal/cli/author"
	"github.com/qtype-dev/qtype/internal/mcpserver"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/tool"
)

// mcpCommand is one call of qtype mcp.
type mcpCommand struct {
	*cli.Streams
	app       string
	address   string
	folder    string
	exposed   bool
	ephemeral bool
	quiet     bool
	clients   *appflags.Clients
	store     appflags.Store
	grants    appflags.Access
}

// newMCP returns qtype mcp.
func newMCP(s *cli.Streams) *cobra.Command {
	m := &mcpCommand{Streams: s, clients: appflags.NewClients(s)}
	c := &cobra.Command{
		Use:   "mcp",
		Short: "Run an MCP server: help for coding assistants, or an application's flows as tools",
		Long: `Runs a server of the Model Context Protocol on standard input and output, or over
streamable HTTP with --http.

Without --app it helps a coding assistant to write documents: it validates, explains,
compares and draws documents, and searches the documentation and the examples.
Documents that a client submits read no files and no environment variables.

With --app the flows of an application are tools, their templates prompts, and its
memories resources. Approvals and client tools are requested from the client.`,
		Example: `  qtype mcp
  qtype mcp --app app.qtype.yaml
  qtype mcp --app app.qtype.yaml --http 127.0.0.1:8123`,
		Args: cli.Arguments(),
		RunE: func(c *cobra.Command, _ []string) error { return m.run(c.Context(), c.Flags().Changed("dir")) },
	}
	f := c.Flags()
	f.SortFlags = false
	cli.AddFlags(f, "Server", func() {
		f.StringVar(&m.app, "app", "", "serve the flows of the document `APP`")
		f.StringVar(&m.address, "http", "", "serve at http://`ADDRESS`/mcp instead of standard input and output")
		f.StringVar(&m.folder, "dir", ".", "the `FOLDER` whose files the converters may read; with --http none by default")
		f.BoolVar(&m.exposed, "insecure-no-auth", false, "with --http, listen on other addresses than loopback, without authentication")
		f.BoolVarP(&m.quiet, "quiet", "q", false, "no warnings and no output of tools on standard error")
		// Clients pass the transport; it is the default.
		f.Bool("stdio", true, "use standard input and output")
	})
	cli.AddFlags(f, "Conversations", func() {
		f.BoolVar(&m.ephemeral, "ephemeral", false, "with --app, keep memories in RAM only")
		m.store.AddTo(f)
	})
	cli.AddFlags(f, "Tools and approvals", func() { m.clients.AddTo(f) })
	cli.AddFlags(f, "Access of the document", func() { m.grants.AddTo(f) })
	cli.GroupHelp(c)
	return c
}

func (m *mcpCommand) run(ctx context.Context, hasFolder bool) (err error) {
	switch {
	case m.app != "" && hasFolder:
		return terminal.Usagef("--dir is for the server without --app")
	case m.app == "" && (m.ephemeral || m.store.Given() || m.clients.Given()):
		return terminal.Usagef("--ephemeral, --store, --client-tool, --approve and --audit-log require --app")
	case m.app == "" && m.grants.Given():
		return terminal.Usagef("--trust, --sandbox, --env, --out-dir and the flags --allow-… require --app")
	case m.app == "":
		return m.assist(ctx, hasFolder || m.address == "")
	}
	p, list := qtype.Check(ctx, m.app, m.grants.Options(qtype.WithStrict())...)
	if err := list.Err(); err != nil {
		return err
	}
	opts, err := m.options(p.Document.Application)
	if err != nil {
		return err
	}
	stored, err := m.store.Options(m.ephemeral)
	if err != nil {
		return err
	}
	app, err := qtype.New(p, append(opts, stored...)...)
	if err != nil {
		return err
	}
	defer appflags.CloseApp(ctx, app, &err)
	o := mcpserver.ApplicationOptions{Version: cli.Version(), AppHandlers: true}
	if m.address == "" { // the user could as well run the document
		ctx = m.clients.Audit.Context(ctx)
		o.Allowed = func(context.Context, *spec.Flow) bool { return true }
		o.ErrorText = func(_ context.Context, err error) string { return err.Error() }
	} else {
		o.ErrorText = func(_ context.Context, err error) string { return m.publicText(err) }
	}
	server, err := mcpserver.Application(app, o)
	if err != nil {
		return err
	}
	defer server.Close()
	return m.serve(ctx, server)
}

// publicText returns what a client of another user reads about an error. The rest is printed here.
func (m *mcpCommand) publicText(err error) string {
	text, complete := runtime.PublicText(err)
	if complete {
		return text
	}
	id := "mcp_" + rand.Text()
	m.Logger("error: ")("run " + id + ": " + err.Error())
	return text + "; the output of the server has the details of run " + id
}

// assist serves coding assistants. Without files the converters read none.
func (m *mcpCommand) assist(ctx context.Context, files bool) error {
	schema, err := authoring.SchemaOf(ctx)
	if err != nil {
		return err
	}
	o := mcpserver.AssistantOptions{Version: cli.Version(), Schema: schema, Rules: author.Rules()}
	if files {
		root, err := os.OpenRoot(m.folder)
		if err != nil {
			return fmt.Errorf("--dir %s: %w", m.folder, errors.Unwrap(err))
		}
		defer root.Close()
		o.Folder = root
	}
	server, err := mcpserver.Assistant(o)
	if err != nil {
		return err
	}
	defer server.Close()
	return m.serve(ctx, server)
}

// serve serves clients with the transport of the command line.
func (m *mcpCommand) serve(ctx context.Context, server *mcpserver.Server) error {
	if m.address == "" {
		return server.Run(ctx, m.In, m.Out)
	}
	l, err := mcpserver.Listen(ctx, m.address, m.exposed)
	var address *mcpserver.AddressError
	var exposed *mcpserver.ExposedError
	switch {
	case errors.As(err, &address):
		return terminal.Usagef("--http: %s", err)
	case errors.As(err, &exposed):
		return terminal.Usagef("--http: %s; use a loopback address, or pass --insecure-no-auth", err)
	case err != nil:
		return err
	}
	fmt.Fprintf(m.Err, "MCP server: http://%s%s\n", l.Addr(), mcpserver.Path)
	return mcpserver.Serve(ctx, l, server)
}

// options returns the options of an application whose client answers: programs for their
// client tools, the tools of --approve without a question, the user of the MCP client
// for all others.
func (m *mcpCommand) options(app *spec.Application) ([]qtype.Option, error) {
	opts, err := m.clients.Options(app)
	if err != nil {
		return nil, err
	}
	if m.ephemeral {
		opts = append(opts, qtype.WithEphemeral())
	}
	if !m.quiet {
		opts = append(opts, qtype.WithLog(m.Logger("")), qtype.WithWarnings(m.Logger("warning: ")))
	}
	approved := m.clients.User.Approved
	approve := func(ctx context.Context, call tool.Request) (bool, string, error) {
		if call.Tool.IsAmong(approved) {
			return true, "", nil
		}
		return mcpserver.Approve(ctx, call)
	}
	return append(opts, qtype.WithClientTool("", mcpserver.HandleClientTool), qtype.WithApproval(approve)), nil
}
