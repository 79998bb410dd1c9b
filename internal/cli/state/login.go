package state

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/cli/appflags"
	"github.com/qtype-dev/qtype/internal/signin"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/tool/mcp"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// loginCommand is one call of qtype login.
type loginCommand struct {
	*cli.Streams
	remove bool
}

// NewLogin returns qtype login.
func NewLogin(s *cli.Streams) *cobra.Command {
	l := &loginCommand{Streams: s}
	c := &cobra.Command{
		Use: "login APP [TOOL]", Short: "Sign in at the servers of MCPTools",
		Long: `Signs in at the servers of the MCPTools whose auth has the type oauth2_login, or of one of them.

An address is printed that you open in a browser on this computer. The tokens are stored
in a file that only you can read, in the folder of QTYPE_HOME; later runs use and renew them.`,
		Example: `  qtype login app.qtype.yaml
  qtype login app.qtype.yaml library
  qtype login app.qtype.yaml --remove`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Arguments("a document: qtype login APP", "a tool")(c, args)
			}
			return cli.Arguments("a document: qtype login APP")(c, args)
		},
		ValidArgsFunction: cli.YAMLFiles,
		RunE: func(c *cobra.Command, args []string) error {
			return l.run(c.Context(), args[0], strings.Join(args[1:], ""))
		},
	}
	c.Flags().BoolVar(&l.remove, "remove", false, "delete the stored tokens instead")
	return c
}

func (l *loginCommand) run(ctx context.Context, path, only string) error {
	return withStored(ctx, l.Streams, path, &appflags.Store{}, func(ctx context.Context, app *runtime.App) error {
		tools, err := loginTools(app.Spec(), only)
		if err != nil {
			return err
		}
		for _, t := range tools {
			if err := l.one(ctx, app, t); err != nil {
				return err
			}
		}
		return nil
	})
}

// loginTools returns a tool for each sign-in that the document needs, or the one with an id.
func loginTools(app *spec.Application, only string) ([]*spec.MCPTool, error) {
	var found []*spec.MCPTool
	var names []string
	known := map[signin.Key]bool{}
	for _, t := range app.AllTools() {
		t, ok := t.(*spec.MCPTool)
		if !ok || mcp.LoginOf(t) == nil {
			continue
		}
		names = append(names, t.ID)
		key := signin.KeyOf(mcp.LoginOf(t), t.URL)
		if only == t.ID || only == "" && !known[key] {
			found = append(found, t)
		}
		known[key] = true
	}
	switch {
	case len(names) == 0:
		return nil, fmt.Errorf("no MCPTool of the document has an auth of type oauth2_login")
	case len(found) == 0:
		return nil, fmt.Errorf("no MCPTool %q with an auth of type oauth2_login%s", only, diag.DidYouMean(only, names))
	}
	return found, nil
}

// one signs in at the server of a tool, or deletes its tokens.
func (l *loginCommand) one(ctx context.Context, app *runtime.App, t *spec.MCPTool) error {
	if l.remove {
		folder, err := signin.Default()
		if err != nil {
			return err
		}
		removed, err := folder.Remove(signin.KeyOf(mcp.LoginOf(t), t.URL))
		if err == nil && removed {
			fmt.Fprintf(l.Err, "%s: the tokens for %s are deleted\n", t.ID, terminal.Clean(t.URL))
		}
		return err
	}
	expires, renewed, err := app.SignIn(ctx, t, func(address string) {
		fmt.Fprintf(l.Err, "%s: open this address in a browser on this computer to sign in for %s:\n\n%s\n\n", t.ID, terminal.Clean(t.URL), terminal.Clean(address))
	})
	if err != nil {
		return err
	}
	until := ""
	switch {
	case renewed:
		until = "; the tokens are renewed when they expire"
	case !expires.IsZero():
		until = " until " + expires.Local().Format(time.DateTime)
	}
	fmt.Fprintf(l.Err, "%s: signed in%s\n", t.ID, until)
	return nil
}
