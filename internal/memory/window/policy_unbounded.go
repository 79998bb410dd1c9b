package window

import "github.com/qtype-dev/qtype/memory/store"

// unbounded keeps everything.
type unbounded struct{ KeepAll }

func newUnbounded(Limits) Policy { return unbounded{} }

func (unbounded) Evict(*View, int, int) Eviction             { return Eviction{} }
func (unbounded) Usage(_, tokens int) (int, int, store.Unit) { return tokens, 0, store.InTokens }
