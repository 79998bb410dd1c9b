package timer

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// TestOutlast_NeverAnswered: the warning asks for the address of a server only if it has not answered before.
func TestOutlast_NeverAnswered(t *testing.T) {
	for _, answers := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		var warnings []string
		ctx = WithOutages(ctx, time.Hour, func(text string) {
			warnings = append(warnings, text)
			cancel() // ends the wait
		})
		isAway := func(error) bool { return true }
		if answers {
			if err := Outlast(ctx, "model m", isAway, func() error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		err := Outlast(ctx, "model m", isAway, func() error { return errors.New("model m: connection refused") })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want that the wait was canceled", err)
		}
		if len(warnings) != 1 || !strings.HasPrefix(warnings[0], "model m: connection refused: rows wait for it, 1h0m0s at most") {
			t.Fatalf("got the warnings %q", warnings)
		}
		if asked := strings.HasSuffix(warnings[0], "is its address right?"); asked == answers {
			t.Errorf("answered before: %v, got %q", answers, warnings[0])
		}
	}
}
