package memory

import "github.com/qtype-dev/qtype/memory/store"

// unbounded keeps everything.
type unbounded struct{ keepAll }

func newUnbounded(Limits) evictionPolicy { return unbounded{} }

func (unbounded) evict(*view, int, int) eviction             { return eviction{} }
func (unbounded) usage(_, tokens int) (int, int, store.Unit) { return tokens, 0, store.InTokens }
