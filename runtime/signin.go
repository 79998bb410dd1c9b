package runtime

import (
	"context"
	"time"

	"github.com/qtype-dev/qtype/internal/tool/mcp"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/tool"
)

// SignIn signs a person in at the server of an MCPTool whose auth is an OAuth2LoginAuth, and
// stores the tokens for runs. show gets the address that the person opens in a browser. It
// returns when the access token expires, the zero time if it does not, and whether it is
// renewed without the person.
func (a *App) SignIn(ctx context.Context, t *spec.MCPTool, show func(address string)) (expires time.Time, renewed bool, err error) {
	opts := tool.Options{HTTP: a.opts.HTTP, Secret: a.secret, Getenv: a.Getenv, Policy: a.opts.Policy, Learn: a.opts.Redactor.Add}
	tokens, err := mcp.Login(ctx, t, opts, show)
	if err != nil {
		return time.Time{}, false, a.opts.Redactor.Error(withPosition(t, err))
	}
	return tokens.Expiry, tokens.RefreshToken != "", nil
}
