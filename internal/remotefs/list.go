package remotefs

import (
	"context"
	"iter"
	"time"

	"github.com/qtype-dev/qtype/internal/trust"
)

// Object is an object of a bucket.
type Object struct {
	Address  string    // as Open accepts it
	Size     int64     // in bytes
	Modified time.Time // when it was written; zero if unknown
}

// List returns the objects of a bucket whose addresses begin with a prefix, in the order
// of their keys. The bucket itself, with a slash, is the prefix of all. The list ends
// after an error. Only schemes of buckets have lists.
func (c *Client) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		if err := trust.From(ctx).Read(prefix); err != nil {
			yield(Object{}, err)
			return
		}
		if trust.From(ctx).Place(prefix) != prefix {
			yield(Object{}, &AccessError{Address: prefix, Why: "fixtures have no buckets that can be listed"})
			return
		}
		// An address needs a key; the prefix of all objects has none.
		store, key, err := c.store(ctx, prefix+"k")
		if err != nil {
			yield(Object{}, err)
			return
		}
		key = key[:len(key)-1]
		bucket := prefix[:len(prefix)-len(key)]
		for object, err := range store.List(ctx, key) {
			object.Address = bucket + object.Address
			if !yield(object, err) || err != nil {
				return
			}
		}
	}
}
