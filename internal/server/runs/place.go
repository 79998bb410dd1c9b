package runs

import (
	"cmp"
	"strconv"
	"strings"
	"time"
)

// Place is the place of a run in a list, the newest first. A client that has read a part of the
// list continues after a place: runs that begin or are deleted meanwhile repeat or skip none.
type Place struct {
	nanos int64 // of the time by which the list is sorted
	id    string
}

// PlaceOf returns the place of a run in a list that is sorted by times.
func PlaceOf(at time.Time, id string) Place { return Place{at.UnixNano(), id} }

// Compare returns a negative number if p is before other in the list.
func (p Place) Compare(other Place) int {
	return cmp.Or(cmp.Compare(other.nanos, p.nanos), strings.Compare(p.id, other.id))
}

// String returns the place as a text for clients.
func (p Place) String() string { return strconv.FormatInt(p.nanos, 36) + "." + p.id }

// ParsePlace parses what String returns.
func ParsePlace(text string) (p Place, ok bool) {
	number, id, found := strings.Cut(text, ".")
	nanos, err := strconv.ParseInt(number, 36, 64)
	return Place{nanos, id}, found && id != "" && err == nil
}
