package openai

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
)

// responsesMemory is the part of the store that knows the newest response of each
// session: a session without messages, with the id as a named value.
const (
	responsesMemory = "qtype:responses"
	newestValue     = "newest"
)

// responseID returns the id of a response, which has the session if it is stored.
func responseID(session string, stored bool, unique string) string {
	if !stored {
		return "resp_" + unique
	}
	return "resp_" + base64.RawURLEncoding.EncodeToString([]byte(session)) + "." + unique
}

// sessionOf returns the session of a stored response.
func sessionOf(id string) (session string, ok bool) {
	coded, _, ok := strings.Cut(strings.TrimPrefix(id, "resp_"), ".")
	raw, err := base64.RawURLEncoding.DecodeString(coded)
	return string(raw), ok && err == nil && strings.HasPrefix(id, "resp_") && checkSession("", string(raw)) == nil
}

func (t *turn) responseKey(session string) memory.Key {
	return ResponseKey(t.flow.ID(), t.principal.StoredSession(session))
}

// ResponseKey returns where the newest response of a flow in a stored session is known.
func ResponseKey(flow, stored string) memory.Key {
	return memory.Key{Memory: responsesMemory, Session: flow + "/" + stored}
}

// Forget deletes what is known of the responses of a flow in a stored session.
func Forget(ctx context.Context, store memory.Store, flow, session string) error {
	return store.Delete(ctx, ResponseKey(flow, session))
}

// newestResponse returns the id of the newest response of a session, empty for none.
func (a *api) newestResponse(ctx context.Context, t *turn, session string) (string, error) {
	head, err := a.Store.Head(ctx, t.responseKey(session))
	return string(head.Values[newestValue]), err
}

// saveResponse makes a response the newest of its session, unless the request was repeated
// and others have followed the first one.
func (a *api) saveResponse(ctx context.Context, t *turn, out *response) error {
	key := t.responseKey(t.session)
	for {
		head, err := a.Store.Head(ctx, key)
		if err != nil {
			return err
		}
		newest := string(head.Values[newestValue])
		if t.repeated != nil && newest != "" && (out.Previous == nil || newest != *out.Previous) {
			return nil
		}
		err = a.Store.Apply(ctx, key, store.Change{Version: head.Version, Next: store.NextVersion(head.Version), State: head.State,
			Values: map[string][]byte{newestValue: []byte(out.ID)}})
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}
