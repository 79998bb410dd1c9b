package wire

import "sync"

// Recent stores what a provider requires to be sent back with the tool calls that its model
// made, such as signed thoughts, by the ids of the calls. A turn with tools ends after a
// few calls of one process, so the newest ones are enough, and conversations need not store
// them. The zero value is ready to use, and safe for concurrent use.
type Recent[V any] struct {
	mu    sync.Mutex
	order []string // ids of calls, the oldest first
	of    map[string]V
}

// Put stores the value of a call.
func (r *Recent[V]) Put(id string, value V) {
	const most = 1024
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[string]V{}
	}
	if _, known := r.of[id]; !known {
		if len(r.order) == most {
			delete(r.of, r.order[0])
			r.order = r.order[1:]
		}
		r.order = append(r.order, id)
	}
	r.of[id] = value
}

// Find returns the value of a call; the zero value for an unknown one.
func (r *Recent[V]) Find(id string) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of[id]
}
