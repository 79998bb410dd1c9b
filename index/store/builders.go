package store

import "sync"

// builders is the one table of stores, by their names in spec.IndexStores.
var builders = sync.OnceValue(func() map[string]builder {
	return map[string]builder{
		"embedded": openEmbedded,
	}
})
