package catalogue

import (
	"slices"
	"time"
)

// StopsBy returns whether a model has stopped answering by the end of a day. Without a day it
// is what the row says.
func (m *Model) StopsBy(day time.Time) bool {
	if day.IsZero() || m.Shutdown == "" {
		return m.Status == Retired
	}
	return m.Shutdown <= day.Format(time.DateOnly)
}

// DaysLeft returns the number of days from a day until the shutdown date. It is false without
// a date.
func (m *Model) DaysLeft(day time.Time) (int, bool) {
	end, err := time.Parse(time.DateOnly, m.Shutdown)
	if err != nil {
		return 0, false
	}
	from, _ := time.Parse(time.DateOnly, day.Format(time.DateOnly))
	return int(end.Sub(from).Hours() / 24), true
}

// Successor returns the model to use in place of another one, by the name that it has where
// that one was named: the replacement, or its own replacement if it will not answer on the day.
// It is nil if none is known.
func (c *Catalogue) Successor(m *Model, on time.Time) (name string, next *Model) {
	seen := []string{m.ID}
	for next = m; next == m || next.StopsBy(on); {
		found, ok := c.Lookup(m.Provider, next.Replacement)
		if !ok || found.Provider != m.Provider || slices.Contains(seen, found.ID) {
			return "", nil
		}
		name, next = next.Replacement, found
		seen = append(seen, found.ID)
	}
	if _, ok := next.Profiles[m.Profile]; ok {
		name = m.Profile + "." + name
	}
	return name, next
}
