package trust

import (
	"net"
	"testing"

	"pgregory.net/rapid"
)

// TestPorts compares the functions with those of package net.
func TestPorts(t *testing.T) {
	hosts := rapid.StringOf(rapid.SampledFrom([]rune("[]:a1.%")))
	rapid.Check(t, func(t *rapid.T) {
		host := hosts.Draw(t, "host")
		want, _, err := net.SplitHostPort(host)
		if got, ok := splitPort(host); ok != (err == nil) || ok && got != want {
			t.Errorf("%q: %q %v, want %q %v", host, got, ok, want, err)
		}
		if got, want := joinPort(host, "80"), net.JoinHostPort(host, "80"); got != want {
			t.Errorf("%q: %q, want %q", host, got, want)
		}
	})
}
