// Package a2a is the adapter for the Agent2Agent Protocol (A2A), versions 1.0 and 0.3, over
// JSON-RPC. A task is a run, a context is a session, and a skill is a flow.
package a2a

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"

	formersrv "github.com/a2aproject/a2a-go/a2asrv"
	sdk "github.com/a2aproject/a2a-go/v2/a2a"
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

// modes are the media types that all skills read and write.
var modes = []string{"text/plain", "application/json"}

// card returns the card of the agent with the flows that the caller may call.
func (q *requests) card() *sdk.AgentCard {
	c := &sdk.AgentCard{
		Version:            cmp.Or(q.Version, "0"),
		Capabilities:       sdk.AgentCapabilities{Streaming: true, ExtendedAgentCard: q.Authentication != "none"},
		DefaultInputModes:  modes,
		DefaultOutputModes: modes,
		Skills:             []sdk.AgentSkill{},
	}
	path := "/a2a"
	if q.flow != nil {
		path = "/flows/" + q.flow.ID() + path
		c.Name, c.Description = q.flow.ID(), describe(q.flow)
		c.Skills = append(c.Skills, skill(q.flow))
	} else {
		application := q.app.App.Spec()
		c.Name, c.Description = application.ID, cmp.Or(application.Description, "The application "+application.ID)
		for _, f := range q.app.Flows {
			if access.Allowed(f.Spec, q.principal) {
				c.Skills = append(c.Skills, skill(f))
			}
		}
	}
	current := sdk.NewAgentInterface(q.address+path, sdk.TransportProtocolJSONRPC)
	former := sdk.NewAgentInterface(q.address+path, sdk.TransportProtocolJSONRPC)
	former.ProtocolVersion = sdk.ProtocolVersion(formerVersion)
	c.SupportedInterfaces = []*sdk.AgentInterface{current, former}
	q.secure(c)
	return c
}

// secure declares which credentials clients need.
func (q *requests) secure(c *sdk.AgentCard) {
	bearer := sdk.HTTPAuthSecurityScheme{Scheme: "Bearer", Description: "An API key"}
	switch q.Authentication {
	case "none":
		return
	case "oidc":
		bearer.BearerFormat, bearer.Description = "JWT", "A token of the OpenID provider, or an API key"
	}
	c.SecuritySchemes = sdk.NamedSecuritySchemes{"bearer": bearer}
	c.SecurityRequirements = sdk.SecurityRequirementsOptions{{"bearer": {}}}
	if q.Authentication == "key" {
		c.SecuritySchemes["apiKey"] = sdk.APIKeySecurityScheme{Location: sdk.APIKeySecuritySchemeLocationHeader, Name: "X-API-Key"}
		c.SecurityRequirements = append(c.SecurityRequirements, sdk.SecurityRequirements{"apiKey": {}})
	}
}

// skill describes a flow.
func skill(f *schema.Flow) sdk.AgentSkill {
	s := sdk.AgentSkill{ID: f.ID(), Name: f.ID(), Description: describe(f), InputModes: modes, OutputModes: modes}
	if f.Conversational() {
		s.Tags = []string{"conversation"}
		s.Examples = f.Spec.Interface.Examples
		return s
	}
	s.Tags = []string{"form"}
	s.Examples = []string{string(f.Example())}
	s.Description += " Send a data part with " + inputs(f) + "."
	return s
}

func describe(f *schema.Flow) string {
	return cmp.Or(f.Spec.Description, "The flow "+f.ID()+".")
}

// inputs lists the inputs of a flow with their types.
func inputs(f *schema.Flow) string {
	if len(f.Inputs) == 0 {
		return "an empty object"
	}
	var list []string
	for _, v := range f.Inputs {
		list = append(list, fmt.Sprintf("%s (%s)", v.ID, v.Type))
	}
	return strings.Join(list, ", ")
}

// object is a JSON object.
type object = map[string]json.RawMessage

// cardJSON returns a card that clients of both versions of the protocol read: it has the
// members of both.
func cardJSON(card *sdk.AgentCard) ([]byte, error) {
	current, err := json.Marshal(card)
	if err != nil {
		return nil, err
	}
	former, err := json.Marshal(formerCard(card))
	if err != nil {
		return nil, err
	}
	return merge(former, current, "securitySchemes", "*")
}

// merge returns an object with the members of both; those of b win. The values at path,
// where * is each member, are merged too.
func merge(a, b json.RawMessage, path ...string) (json.RawMessage, error) {
	var first, second object
	if err := json.Unmarshal(a, &first); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, &second); err != nil {
		return nil, err
	}
	out := object{}
	maps.Copy(out, first)
	for name, v := range second {
		if old, ok := first[name]; ok && len(path) > 0 && (path[0] == name || path[0] == "*") {
			var err error
			if v, err = merge(old, v, path[1:]...); err != nil {
				return nil, err
			}
		}
		out[name] = v
	}
	return json.Marshal(out)
}
