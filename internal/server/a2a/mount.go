// Package a2a is the adapter for the Agent2Agent Protocol (A2A), versions 1.0 and 0.3, over
// JSON-RPC. A task is a run, a context is a session, and a skill is a flow.
package a2a

import (
	"bytes"
	"fmt"
	"io"
	"net/http"

	formersrv "github.com/a2aproject/a2a-go/a2asrv"
	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/host"
	"github.com/qtype-dev/qtype/internal/server/schema"
)

// CardPath is where clients find the card of an agent, below its address.
const CardPath = "/.well-known/agent-card.json"

// Mount adds the agent of the application, whose skills are its flows, and an agent for
// each flow: the cards, and JSON-RPC at /a2a and /flows/{flow}/a2a.
func Mount(mux *http.ServeMux, h *host.Host) {
	s := &service{h}
	for pattern, handle := range map[string]func(*requests, http.ResponseWriter, *http.Request) error{
		"GET " + CardPath:              serveCard,
		"GET /flows/{flow}" + CardPath: serveCard,
		"POST /a2a":                    serveRPC,
		"POST /flows/{flow}/a2a":       serveRPC,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			q, err := s.requests(r)
			if err == nil {
				err = handle(q, w, r)
			}
			if err != nil {
				h.Fail(w, r, err)
			}
		})
	}
}

// service has what all requests share.
type service struct{ *host.Host }

// requests handles the calls of one HTTP request. It is an a2asrv.RequestHandler.
type requests struct {
	*service
	app       *host.Application
	principal access.Principal
	flow      *schema.Flow // of the agent of a flow; nil for that of the application
	address   string       // of the server
}

func (s *service) requests(r *http.Request) (*requests, error) {
	q := &requests{service: s, app: s.Current(), principal: access.PrincipalOf(r.Context()), address: s.Address(r)}
	if id := r.PathValue("flow"); id != "" {
		var err error
		q.flow, err = q.app.Flow(q.principal, id)
		return q, err
	}
	return q, nil
}

// serveRPC answers a call.
func serveRPC(q *requests, w http.ResponseWriter, r *http.Request) error {
	if err := host.RequireJSON(r); err != nil {
		return err
	}
	body, err := host.ReadBody(w, r)
	if err != nil {
		return err
	}
	call, err := readCall(r, body)
	if err != nil {
		return call.writeError(w, err)
	}
	if call.streams() {
		if err := access.BeginStream(r.Context()); err != nil {
			return err
		}
	}
	r.Body = io.NopCloser(bytes.NewReader(call.body))
	recovered := func(p any) error {
		q.Log.Error("a call of A2A failed", "error", fmt.Sprint(p))
		return errInternal
	}
	w.Header().Set("Cache-Control", "no-store")
	if call.former() {
		w.Header().Set("Content-Type", "application/json") // the handler does not set it for errors
		formersrv.NewJSONRPCHandler(formerRequests{q}, formersrv.WithKeepAlive(q.Heartbeat), formersrv.WithPanicHandler(func(p any) error {
			return formerError(recovered(p))
		})).ServeHTTP(newWriter(w), r)
		return nil
	}
	a2asrv.NewJSONRPCHandler(q, a2asrv.WithTransportKeepAlive(q.Heartbeat), a2asrv.WithTransportPanicHandler(recovered)).ServeHTTP(newWriter(w), r)
	return nil
}

// serveCard answers with the card of an agent.
func serveCard(q *requests, w http.ResponseWriter, r *http.Request) error {
	card, err := cardJSON(q.card())
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "private, max-age=60")
	_, _ = w.Write(card) //nolint:gosec // it is JSON; an error means that the client has gone
	return nil
}

var (
	_ a2asrv.RequestHandler    = (*requests)(nil)
	_ formersrv.RequestHandler = formerRequests{}
)
