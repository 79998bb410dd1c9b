package sessions

import (
	"net/http"

	"github.com/qtype-dev/qtype/internal/memoryview"
)

// context answers GET /sessions/{id}/context.
func (s *Service) context(w http.ResponseWriter, r *http.Request) error {
	one, m, err := s.findMemory(r)
	if err != nil {
		return err
	}
	if m.Memory == nil {
		return writeJSON(w, http.StatusOK, memoryview.Context{Blocks: []memoryview.Block{}, Flushes: []memoryview.Flush{}})
	}
	c, err := memoryview.ContextOf(r.Context(), m, one.stored)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, c)
}
