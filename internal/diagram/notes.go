package diagram

import (
	"fmt"
	"net/url"
	"strconv"

	"github.com/qtype-dev/qtype/spec"
)

// notesOf is what is worth a line below an entity's id. Secrets, and texts that
// may hold them, are not.
func notesOf(e spec.Entity) []string {
	typ := spec.TypeName(e)
	switch e := e.(type) {
	case spec.ModelEntity:
		return modelNotes(e)
	case *spec.Memory:
		return []string{memoryNote(e)}
	case *spec.APITool:
		note := typ + " · " + e.Method
		if u, err := url.Parse(e.Endpoint); err == nil && u.Host != "" {
			note += " " + u.Host // without the user, the path and the query
		}
		return []string{note}
	case *spec.Store:
		return []string{e.Type}
	case *spec.Telemetry:
		return []string{e.Provider}
	case *spec.Flow:
		if e.Interface != nil {
			return []string{e.Interface.Type}
		}
		return nil
	case *spec.Decoder:
		return []string{typ + " · " + e.Format}
	}
	if typ == "" {
		return nil
	}
	return []string{typ}
}

func modelNotes(e spec.ModelEntity) []string {
	m := e.Base()
	note := m.Provider
	if !m.IsMock() {
		note += " · " + m.Name()
	}
	if embedding, ok := e.(*spec.EmbeddingModel); ok {
		note += fmt.Sprintf(" · %d dimensions", embedding.Dimensions)
	}
	return []string{note}
}

// memoryNote is the policy and the limit that goes with it.
func memoryNote(m *spec.Memory) string {
	var limit string
	switch m.Policy {
	case spec.PolicyMessageWindow:
		limit = thousands(m.MaxMessages) + " messages"
	case spec.PolicyTokenWindow:
		limit = thousands(m.MaxTokens) + " tokens"
	case spec.PolicyRoundWindow:
		limit = thousands(m.NRounds) + " rounds"
	case spec.PolicyUnbounded:
		return string(m.Policy)
	default:
		return fmt.Sprintf("%s tokens × %s", thousands(m.TokenLimit), strconv.FormatFloat(m.ChatHistoryTokenRatio, 'g', -1, 64))
	}
	return string(m.Policy) + " · " + limit
}

// thousands is 50,000.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
