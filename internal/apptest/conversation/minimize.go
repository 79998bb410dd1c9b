package conversation

import "slices"

// Minimize returns the turns that the last one needs: as few as possible with which same still is true.
func Minimize(turns []*Turn, same func([]*Turn) bool) []*Turn {
	last := turns[len(turns)-1]
	earlier := minimize(turns[:len(turns)-1], func(some []*Turn) bool { return same(append(slices.Clone(some), last)) })
	return append(earlier, last)
}

// MinimizeCalls returns the turns with as few calls of tools as possible with which same still is true. An answer of the
// model from which all calls are removed is removed, too.
func MinimizeCalls(turns []*Turn, same func([]*Turn) bool) []*Turn {
	var ids []callID
	for i, t := range turns {
		for j, r := range t.Rounds {
			for k := range r.Calls {
				ids = append(ids, callID{i, j, k})
			}
		}
	}
	kept := minimize(ids, func(some []callID) bool { return same(withCalls(turns, some)) })
	return withCalls(turns, kept)
}

// callID is the place of a call.
type callID struct{ turn, round, call int }

// withCalls returns copies of turns with some of their calls.
func withCalls(turns []*Turn, kept []callID) []*Turn {
	made := make([]*Turn, len(turns))
	for i, t := range turns {
		copied := *t
		copied.Rounds = nil
		for j, r := range t.Rounds {
			own := *r
			own.Calls = nil
			for k, c := range r.Calls {
				if slices.Contains(kept, callID{i, j, k}) {
					own.Calls = append(own.Calls, c)
				}
			}
			if len(own.Calls) > 0 || len(r.Calls) == 0 {
				copied.Rounds = append(copied.Rounds, &own)
			}
		}
		made[i] = &copied
	}
	return made
}

// minimize returns the items without which same is not true any more: none of them can be left out alone. It leaves out all,
// then halves, quarters and so on, as delta debugging does.
func minimize[T any](items []T, same func([]T) bool) []T {
	for size := len(items); size > 0; {
		before := len(items)
		for at := 0; at < len(items); {
			without := slices.Delete(slices.Clone(items), at, min(at+size, len(items)))
			if same(without) {
				items = without
			} else {
				at += size
			}
		}
		if size > 1 || len(items) == before {
			size /= 2
		}
	}
	return items
}
