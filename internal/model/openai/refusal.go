package openai

import (
	"net/http"
	"regexp"
	"sync"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// reasoningRefusal are words of a server that refuses reasoning which it cannot decrypt or has not
// stored.
var reasoningRefusal = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)encrypted[ _]content\b.*(verif|decrypt|invalid|parse)|invalid encrypted|\bitem with id \S+ not found|provided without its required`)
})

// RefusesReasoning reports whether a server refused the reasoning in a request.
func (t target) RefusesReasoning(failure *model.Error) bool {
	switch {
	case failure.Status != http.StatusBadRequest && failure.Status != http.StatusNotFound:
		return false
	case failure.Code == "invalid_encrypted_content":
		return true
	}
	return reasoningRefusal().MatchString(failure.Message)
}

// IsReasoning reports whether a block is reasoning, or an item that belongs to it: the server refuses
// the calls of its own tools without their reasoning.
func (t target) IsReasoning(b *chat.Block) bool {
	return b.Item != nil && (b.Type == chat.ReasoningType || b.Type == chat.ItemType)
}
