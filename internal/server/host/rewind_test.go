package host

import (
	"strings"
	"testing"
)

func TestLastShown(t *testing.T) {
	for _, tt := range []struct {
		name, shown, stored string
		want                int
	}{
		{"nothing is stored", "a b", "", 0},
		{"all is shown", "a b c", "a b c", 3},
		{"the end was removed", "a", "a b c", 1},
		{"all was removed", "", "a b c", 0},
		{"other messages", "x y", "a b c", 0},
		{"only the newest are shown", "b c", "a b c", 3},
		{"the newest before an edit", "b", "a b c", 2},
		{"a failed message", "a failed b", "a b c", 2},
		{"a failed message at the end", "a b failed", "a b c", 2},
		{"only a failed message", "failed", "a b", 0},
		{"a message with another text", "a other c", "a b c", 3},
		{"equal messages", "a yes", "a yes yes", 2},
		{"equal messages after a failed one", "failed yes", "yes yes", 1},
	} {
		if got := lastShown(strings.Fields(tt.shown), strings.Fields(tt.stored)); got != tt.want {
			t.Errorf("%s: kept %d turns, want %d", tt.name, got, tt.want)
		}
	}
}
