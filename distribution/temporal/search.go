package temporal

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/memory"
)

// The search attributes of workflows.
const (
	flowAttribute    = "QtypeFlow"
	sessionAttribute = "QtypeSession"
	userAttribute    = "QtypeUser"
)

// The most sessions, and users, that a run is found by. Each server has such limits.
const (
	maxOwners    = 50
	maxOwnerSize = 200 // bytes
)

// owners are the sessions of the rows of a run, and the users to whom they belong.
type owners struct {
	sessions, users map[string]bool
	many            bool // too many, or too long ones: the run is not found by them
}

// add adds the session of a row.
func (o *owners) add(stored string) {
	user, session := memory.SplitSession(stored)
	if o.many || stored == "" {
		return
	}
	if o.sessions == nil {
		o.sessions, o.users = map[string]bool{}, map[string]bool{}
	}
	o.sessions[session] = true
	if user != "" {
		o.users[user] = true
	}
	if o.many = len(o.sessions) > maxOwners || len(session) > maxOwnerSize || len(user) > maxOwnerSize; o.many {
		o.sessions, o.users = nil, nil
	}
}

// lists returns both in alphabetical order, as Temporal may have them: their hashes, unless the configuration names or
// encrypts them.
func (o *owners) lists(cfg durable.Config) (sessions, users []string) {
	sessions, users = slices.Sorted(maps.Keys(o.sessions)), slices.Sorted(maps.Keys(o.users))
	if !cfg.NameOwners && len(cfg.Keys) == 0 {
		for _, list := range [][]string{sessions, users} {
			for i, id := range list {
				list[i] = hashed(id)
			}
		}
	}
	return sessions, users
}

// hashed returns what Temporal has of the id of a session or a user.
func hashed(id string) string {
	sum := sha256.Sum256([]byte("qtype owner " + id))
	return "sha256-" + hex.EncodeToString(sum[:16])
}

// reveal replaces the hashes of the ids of a filter.
func reveal(r *durable.Run, f durable.Filter) {
	for _, at := range []struct {
		list []string
		id   string
	}{{r.Sessions, f.Session}, {r.Users, f.User}} {
		if i := slices.Index(at.list, hashed(at.id)); i >= 0 {
			at.list[i] = at.id
		}
	}
}

// attributes returns the search attributes of the run. An encrypted run has none: the server would
// know their values.
func (r *engineRun) attributes() temporal.SearchAttributes {
	if len(r.cfg.Keys) > 0 {
		return temporal.SearchAttributes{}
	}
	all := []temporal.SearchAttributeUpdate{temporal.NewSearchAttributeKeyKeyword(flowAttribute).ValueSet(r.header.Flow)}
	if len(r.sessions) > 0 {
		all = append(all, temporal.NewSearchAttributeKeyKeywordList(sessionAttribute).ValueSet(r.sessions))
	}
	if len(r.users) > 0 {
		all = append(all, temporal.NewSearchAttributeKeyKeywordList(userAttribute).ValueSet(r.users))
	}
	return temporal.NewSearchAttributes(all...)
}

// registerAttributes registers the search attributes on the server.
func registerAttributes(ctx context.Context, c client.Client, namespace string) error {
	_, err := c.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		Namespace: namespace,
		SearchAttributes: map[string]enums.IndexedValueType{
			flowAttribute:    enums.INDEXED_VALUE_TYPE_KEYWORD,
			sessionAttribute: enums.INDEXED_VALUE_TYPE_KEYWORD_LIST,
			userAttribute:    enums.INDEXED_VALUE_TYPE_KEYWORD_LIST,
		},
	})
	return err
}

// registerHint is how an administrator registers the search attributes.
func registerHint(namespace string) string {
	return fmt.Sprintf("an administrator can register them: temporal operator search-attribute create --namespace %s --name %s --type Keyword --name %s --type KeywordList --name %s --type KeywordList",
		namespace, flowAttribute, sessionAttribute, userAttribute)
}

// isUnknownAttribute reports whether a server has rejected search attributes.
func isUnknownAttribute(err error) bool {
	invalid, ok := errors.AsType[*serviceerror.InvalidArgument](err)
	return ok && strings.Contains(strings.ToLower(invalid.Error()), "search attribute")
}

// listQuery returns the query for the runs of a filter. It also selects runs without the attributes,
// which were started before the server had them: the filter is applied to their memos.
func listQuery(ctx context.Context, c client.Client, cfg durable.Config, f durable.Filter) (string, error) {
	plain := fmt.Sprintf("WorkflowType = %s", quoted(workflowName))
	query := plain
	for name, value := range map[string]string{flowAttribute: f.Flow, sessionAttribute: f.Session, userAttribute: f.User} {
		if value != "" {
			query += fmt.Sprintf(" AND (%s = %s OR %s = %s OR %s IS NULL)", name, quoted(value), name, quoted(hashed(value)), flowAttribute)
		}
	}
	if query == plain {
		return plain, nil
	}
	_, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Namespace: cfg.Namespace, Query: query, PageSize: 1})
	if invalid := (*serviceerror.InvalidArgument)(nil); errors.As(err, &invalid) {
		return plain, nil // the server does not have the attributes
	}
	return query, err
}

// quoted returns a text as a value of a query.
func quoted(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}
