package lsp

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/qtype-dev/qtype/internal/lsp/protocol"
)

// settings are the user's settings in the editor. Unknown keys, and a value that
// is not an object, belong to other servers and are ignored.
type settings struct {
	RemoteIncludes *bool // read remote includes; nil if not set
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *settings) UnmarshalJSON(raw []byte) error {
	var known struct {
		RemoteIncludes json.RawMessage `json:"remoteIncludes"`
	}
	if json.Unmarshal(raw, &known) != nil || len(known.RemoteIncludes) == 0 {
		return nil //nolint:nilerr // no settings of this server
	}
	if json.Unmarshal(known.RemoteIncludes, &s.RemoteIncludes) != nil {
		return invalidParams("the setting remoteIncludes must be true or false, not %s", known.RemoteIncludes)
	}
	return nil
}

// didChangeConfigurationParams are the parameters of workspace/didChangeConfiguration.
type didChangeConfigurationParams struct {
	Settings allSettings `json:"settings"`
}

// allSettings are the settings of all servers.
type allSettings struct {
	Qtype settings `json:"qtype"`
}

// UnmarshalJSON accepts values that are not objects: some editors send [] for none.
func (s *allSettings) UnmarshalJSON(raw []byte) error {
	type plain allSettings
	var invalid *jsonrpc2.Error
	if err := json.Unmarshal(raw, (*plain)(s)); errors.As(err, &invalid) {
		return invalid
	}
	return nil
}

// didChangeConfiguration applies changed settings. An invalid one is shown to the
// user: a notification has no response.
func (s *server) didChangeConfiguration(ctx context.Context, raw json.RawMessage) {
	p, err := decodeParams[didChangeConfigurationParams](raw)
	if invalid := new(jsonrpc2.Error); errors.As(err, &invalid) {
		s.publisher.call(ctx, "window/showMessageRequest",
			encode(protocol.ShowMessageRequestParams{Type: protocol.MessageTypeError, Message: "qtype: " + invalid.Message}))
		return
	}
	if s.applySettings(p.Settings.Qtype) {
		s.workspace.remoteChanged("")
		s.recheck(ctx)
	}
}

// applySettings applies settings and reports whether one changed.
func (s *server) applySettings(chosen settings) bool {
	return chosen.RemoteIncludes != nil && s.workspace.remote.setEnabled(*chosen.RemoteIncludes)
}

// encode encodes parameters of requests to the editor, which cannot fail.
func encode[P any](params P) json.RawMessage {
	raw, _ := json.Marshal(params)
	return raw
}
