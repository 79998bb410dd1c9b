package embedded

import (
	"fmt"
	"slices"
	"sync"

	"github.com/qtype-dev/qtype/internal/filter"
)

// maxFilters is the number of filters whose matching entries are kept in memory, one bit
// for each entry.
const maxFilters = 16

// allowed holds the entries that match the last filters.
type allowed struct {
	mu       sync.Mutex
	byFilter map[string]*bitmap
	order    []string // the filter that was added last at the end
}

// keep stores the entries of a filter. The caller holds the lock.
func (a *allowed) keep(key string, b *bitmap) {
	if a.byFilter == nil {
		a.byFilter = map[string]*bitmap{}
	}
	a.byFilter[key] = b
	a.order = append(slices.DeleteFunc(a.order, func(k string) bool { return k == key }), key)
	if len(a.order) > maxFilters {
		delete(a.byFilter, a.order[0])
		a.order = a.order[1:]
	}
}

// filterKey returns a text that is the same only for equal filters.
func filterKey(f filter.Filter) string { return fmt.Sprintf("%#v", f) }
