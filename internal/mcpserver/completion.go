package mcpserver

import (
	"context"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype/internal/server/access"
)

// maxCompletions is the maximum number of proposals, as the protocol limits it.
const maxCompletions = 100

// complete proposes values for the parts of the address of a session: ids of memories,
// and ids of the caller's sessions, the newest first. It proposes nothing else.
func (a *application) complete(ctx context.Context, req *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
	var all []string
	var err error
	if ref := req.Params.Ref; ref != nil && ref.Type == "ref/resource" && ref.URI == sessionTemplate {
		switch req.Params.Argument.Name {
		case "memory":
			for _, m := range a.app.Spec().Memories {
				all = append(all, m.ID)
			}
		case "session":
			all, err = a.completeSession(ctx, req.Params.Context)
		}
	}
	found := []string{}
	for _, value := range all {
		if strings.HasPrefix(value, req.Params.Argument.Value) {
			found = append(found, value)
		}
	}
	shown := found[:min(len(found), maxCompletions)]
	return &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{Values: shown, Total: len(found), HasMore: len(found) > len(shown)}}, err
}

// completeSession returns the ids of the caller's sessions of the memory that was chosen.
func (a *application) completeSession(ctx context.Context, chosen *sdk.CompleteContext) ([]string, error) {
	if chosen == nil || a.app.Memory(chosen.Arguments["memory"]) == nil {
		return nil, nil
	}
	infos, err := a.app.Memory(chosen.Arguments["memory"]).Sessions(ctx)
	var ids []string
	for _, s := range newest(access.PrincipalOf(ctx), infos) {
		ids = append(ids, s.id)
	}
	return ids, err
}
