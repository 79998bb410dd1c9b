package httpx

import (
	"strings"
	"testing"
)

func TestUserAgent(t *testing.T) {
	for version, want := range map[string]string{
		"": "qtype/dev", "(devel)": "qtype/dev", "v1.2.3": "qtype/1.2.3", "v0.0.0-2026+dirty": "qtype/0.0.0-2026+dirty", "v1 (x)": "qtype/1--x-",
	} {
		if got := userAgent(version); got != want {
			t.Errorf("version %q: %q, want %q", version, got, want)
		}
	}
	if !strings.HasPrefix(UserAgent(), "qtype/") {
		t.Error(UserAgent())
	}
}
