package runtime

import (
	"fmt"

	"github.com/qtype-dev/qtype/spec"
)

// NoSessionError is why a row without a session failed: its flow uses a memory, and a
// conversation that several rows share only because none of them names it would mix what
// belongs to different users.
type NoSessionError struct {
	Flow   string // the flow's id
	Memory string // the id of a memory that it uses
}

// Error returns what is missing.
func (e *NoSessionError) Error() string {
	return fmt.Sprintf("the row has no session, and flow %s uses memory %s: set Input.Session", e.Flow, e.Memory)
}

// UsesSessions reports whether a flow, a flow that it runs or a tool that its steps may
// call uses a memory. Each row of such a flow needs a session.
func UsesSessions(f *spec.Flow) bool { return memoryUsed(f) != "" }

// memoryUsed returns the id of the first memory that a flow uses, empty for none.
func memoryUsed(f *spec.Flow) string {
	for s := range f.Plan().All() {
		if memories := s.Memories(); len(memories) > 0 {
			return memories[0].ID
		}
	}
	return ""
}
