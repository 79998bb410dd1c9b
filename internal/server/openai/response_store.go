package openai

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"

	"github.com/qtype-dev/qtype/internal/appstate"
	"github.com/qtype-dev/qtype/memory/store"
)

// newestValue is the name of the value with the id of the newest response of a session.
const newestValue = "newest"

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

// responseOf returns the id of the record of the newest response of a session.
func (t *turn) responseOf(session string) string {
	return appstate.OfFlow(t.principal.StoredSession(session), t.flow.ID())
}

// newestResponse returns the id of the newest response of a session, empty for none.
func (a *api) newestResponse(ctx context.Context, t *turn, session string) (string, error) {
	rec, err := a.State().Records(appstate.Responses).Get(ctx, t.responseOf(session))
	return string(rec.Values[newestValue]), err
}

// saveResponse makes a response the newest of its session, unless the request was repeated
// and others have followed the first one.
func (a *api) saveResponse(ctx context.Context, t *turn, out *response) error {
	records, id := a.State().Records(appstate.Responses), t.responseOf(t.session)
	for {
		rec, err := records.Get(ctx, id)
		if err != nil {
			return err
		}
		newest := string(rec.Values[newestValue])
		if t.repeated != nil && newest != "" && (out.Previous == nil || newest != *out.Previous) {
			return nil
		}
		err = records.Write(ctx, id, store.RecordChange{Version: rec.Version, Next: store.NextVersion(rec.Version), Values: map[string][]byte{newestValue: []byte(out.ID)}})
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}
