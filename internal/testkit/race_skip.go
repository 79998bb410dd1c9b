package testkit

import "testing"

// SkipWithRace skips a slow test of one goroutine if the race detector is on, which makes
// it up to ten times slower and finds nothing. CI runs the packages that call it without
// the race detector, too.
func SkipWithRace(t testing.TB) {
	t.Helper()
	if race {
		t.Skip("one goroutine: runs without -race")
	}
}
