package remote

import (
	"iter"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/index"
)

// listingBatch is how many entries a listing reads at once.
const listingBatch = 200

// Listing lists entries in the order of their ids, in a store without that order: ids
// returns those of all entries that may satisfy the filter of the page, read the entries
// of some ids.
func Listing(p index.Page, ids func() ([]string, error), read func([]string) ([]index.Entry, error)) iter.Seq2[index.Entry, error] {
	return func(yield func(index.Entry, error) bool) {
		all, err := ids()
		if err != nil {
			yield(index.Entry{}, err)
			return
		}
		slices.Sort(all)
		all = slices.Compact(all)
		after, found := slices.BinarySearch(all, p.After)
		if found {
			after++
		}
		if p.After == "" {
			after = 0
		}
		left := p.Limit
		for batch := range slices.Chunk(all[after:], listingBatch) {
			entries, err := read(batch)
			if err != nil {
				yield(index.Entry{}, err)
				return
			}
			slices.SortFunc(entries, func(a, b index.Entry) int { return strings.Compare(a.ID, b.ID) })
			for _, e := range entries {
				if p.Filter != nil && !p.Filter.Match(e.Metadata) {
					continue
				}
				if !yield(e, nil) {
					return
				}
				if left--; left == 0 {
					return
				}
			}
		}
	}
}
