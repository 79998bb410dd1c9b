package testkit

import "testing"

// SkipWithRace skips a slow test of one goroutine if the race detector is on, which makes
// it up to ten times slower and finds nothing. CI also runs the tests that call it without
// the race detector, by their names: only test functions call it, not their helpers.
func SkipWithRace(t testing.TB) {
	t.Helper()
	if race {
		t.Skip("one goroutine: runs without -race")
	}
}
