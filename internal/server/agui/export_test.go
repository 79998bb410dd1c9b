package agui

import (
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/server/schema"
)

// Read reads all that the handler reads of an input, for a flow and a request that waits.
func Read(in *Input, flow *schema.Flow, req *runs.Request) {
	_, _, _ = in.Conversation()
	_ = in.given(flow)
	_ = in.callerTools(flow)
	_, _ = in.answers().take(req, "call")
}
