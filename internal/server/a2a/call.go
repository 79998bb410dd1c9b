package a2a

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	former "github.com/a2aproject/a2a-go/a2a"
	sdk "github.com/a2aproject/a2a-go/v2/a2a"
)

// call is a call of JSON-RPC.
type call struct {
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Version string          `json:"-"` // of the protocol: 0.3 or 1.0
	body    []byte          // with params
}

// faults are the codes of the errors that readCall returns.
var faults = map[error]int{sdk.ErrParseError: -32700, sdk.ErrInvalidRequest: -32600, sdk.ErrInvalidParams: -32602, sdk.ErrVersionNotSupported: -32009}

// readCall parses a call and checks what the SDK reports with other codes than the protocol. The error
// is one of faults. The call has what was read of it.
func readCall(r *http.Request, body []byte) (*call, error) {
	c := &call{body: body}
	if !json.Valid(body) {
		return c, fmt.Errorf("%w: the body is not JSON", sdk.ErrParseError)
	}
	if err := json.Unmarshal(body, c); err != nil {
		return c, fmt.Errorf("%w: %s", sdk.ErrInvalidRequest, wrongType(err, "the call"))
	}
	c.Version = c.version(r)
	if c.Version != formerVersion && c.Version != "1" && !strings.HasPrefix(c.Version, "1.") {
		return c, fmt.Errorf("%w: version %q: use 1.0 or 0.3", sdk.ErrVersionNotSupported, c.Version)
	}
	if c.Params == nil && c.Method != "" {
		return c, c.addParams()
	}
	return c, c.checkMessage()
}

// addParams adds the parameters of a call that has none.
func (c *call) addParams() error {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(c.body, &members) // it is an object
	members["params"] = json.RawMessage("{}")
	var err error
	c.body, err = json.Marshal(members)
	return err
}

// checkMessage decodes the parameters with a message, whose parts may have no or unknown content.
func (c *call) checkMessage() error {
	var params any
	switch c.Method {
	case "SendMessage", "SendStreamingMessage":
		params = &sdk.SendMessageRequest{}
	case "message/send", "message/stream":
		params = &former.MessageSendParams{}
	default:
		return nil
	}
	if err := json.Unmarshal(c.Params, params); err != nil {
		return fmt.Errorf("%w: %s", sdk.ErrInvalidParams, wrongType(err, "params"))
	}
	return nil
}

// wrongType describes an error of package json without types of Go. whole is the name of the value.
func wrongType(err error, whole string) string {
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case !ok:
		return err.Error()
	case wrong.Field != "":
		return fmt.Sprintf("%s cannot be of the type %s", wrong.Field, wrong.Value)
	}
	return fmt.Sprintf("%s cannot be of the type %s", whole, wrong.Value)
}

// writeError answers a call with one of faults.
func (c *call) writeError(w http.ResponseWriter, err error) error {
	code := -32603
	for known, number := range faults {
		if errors.Is(err, known) {
			code = number
		}
	}
	id := c.ID
	if len(id) == 0 || id[0] == '{' || id[0] == '[' {
		id = json.RawMessage("null")
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	return json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": err.Error()}})
}

// streams reports whether the call is answered with a stream.
func (c *call) streams() bool {
	switch c.Method {
	case "SendStreamingMessage", "SubscribeToTask", "message/stream", "tasks/resubscribe":
		return true
	}
	return false
}

// former reports whether the call is one of the version before 1.0.
func (c *call) former() bool { return c.Version == formerVersion }

// version returns the version of the protocol that a client uses: that of the header or
// the parameter A2A-Version. Without it the form of the method's name decides.
func (c *call) version(r *http.Request) string {
	if v := r.Header.Get("A2A-Version"); v != "" {
		return v
	}
	if v := r.URL.Query().Get("A2A-Version"); v != "" {
		return v
	}
	if strings.Contains(c.Method, "/") {
		return formerVersion
	}
	return "1.0"
}
