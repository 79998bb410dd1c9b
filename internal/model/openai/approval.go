package openai

import (
	"encoding/json"
	"fmt"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// OpenAI may ask for an approval before it calls a server of the Model Context Protocol. The request
// becomes a call of the hosted tool, and the result of the call is the decision.

// approvalRequest is an item of an output that asks for an approval.
type approvalRequest struct {
	ID        string `json:"id"`
	Server    string `json:"server_label"`
	Name      string `json:"name"` // of the server's tool
	Arguments string `json:"arguments"`
}

// serverTools returns the names of the hosted tools by the labels of their servers.
func serverTools(tools []model.Tool) map[string]string {
	names := map[string]string{}
	for _, t := range tools {
		var settings struct {
			Label string `json:"server_label"`
		}
		if t.Hosted == "mcp" && json.Unmarshal(t.Settings, &settings) == nil {
			names[settings.Label] = t.Name
		}
	}
	return names
}

// approval adds a request for an approval as a call of the hosted tool. The arguments are the name of
// the server's tool and its arguments.
func (a *responseReader) approval(raw json.RawMessage) error {
	var r approvalRequest
	if err := shape(json.Unmarshal(raw, &r)); err != nil {
		return err
	}
	name, ok := a.servers[r.Server]
	if !ok {
		return fmt.Errorf("an approval is requested for a call of %q, and the request has no tool with this server_label", r.Server)
	}
	arguments := json.RawMessage(r.Arguments)
	if !json.Valid(arguments) {
		arguments = encode(r.Arguments)
	}
	a.draft.Call(r.ID, name, string(encode(struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}{r.Name, arguments})))
	return a.draft.Attach(chat.CallType, chat.Item{Field: model.ApprovalRequest, JSON: string(raw)})
}

// decision encodes the result of a call that asks for an approval.
func decision(m *chat.Message) json.RawMessage {
	answer := object{"type": encode("mcp_approval_response"), "approval_request_id": encode(m.ToolCallID), "approve": encode(true)}
	if text := m.Text(); text != model.Approved {
		answer["approve"], answer["reason"] = encode(false), encode(text)
	}
	return encode(answer)
}
