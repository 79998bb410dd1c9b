package trust_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/trust"
)

func TestBelow(t *testing.T) {
	for _, c := range []struct {
		base, name, want string
		below            bool
	}{
		{"https://h/data", "a b.csv", "https://h/data/a%20b.csv", true},
		{"https://h/data/?sig=x", "a.csv", "https://h/data/a.csv?sig=x", true},
		{"https://h/data", "a?x=1#y", "https://h/data/a%3Fx=1%23y", true},
		{"https://h/data", "https://H:443/data/a.csv?x", "https://H:443/data/a.csv?x", true},
		{"https://h/data", "https://h/database/a.csv", "https://h/database/a.csv", false},
		{"https://h/data", "../a.csv", "https://h/data/../a.csv", false},
		{"https://h/data", "https://h/data/%2e%2e/a.csv", "https://h/data/%2e%2e/a.csv", false},
		{"https://h/data", "https://h/data/%252e%252e/a.csv", "https://h/data/%252e%252e/a.csv", false},
		{"https://h/data", `https://h/data/..%5ca.csv`, `https://h/data/..%5ca.csv`, false},
		{"https://h/data", "https://h@evil/data/a.csv", "https://h@evil/data/a.csv", false},
		{"https://h/data", "https://me:word@h/data/a.csv", "https://me:word@h/data/a.csv", false},
		{"https://h/data", "http://h/data/a.csv", "http://h/data/a.csv", false},
		{"https://h/data", "https://h:8443/data/a.csv", "https://h:8443/data/a.csv", false},
		{"https://h/data", "/data/a.csv", "/data/a.csv", false},
		{"https://h/data", "s3://h/data/a.csv", "s3://h/data/a.csv", false},
		{"https://h", "a.csv", "https://h/a.csv", true},
		{"https://h/%zz", "a.csv", "a.csv", false},
		{"s3://b/x", "a.csv", "s3://b/x/a.csv", true},
		{"s3://b/x", "s3://b/xy/a.csv", "s3://b/xy/a.csv", false},
		{"s3://b/x", "../a.csv", "s3://b/x/../a.csv", false},
		{"s3://b/x/", "s3://other/x/a.csv", "s3://other/x/a.csv", false},
		{"/srv/data", "https://h/a.csv", "https://h/a.csv", false},
		{"/srv/data", "a.csv", "/srv/data/a.csv", true},
		{"file:///srv/data", "a.csv", "/srv/data/a.csv", true},
		{"/srv/data", "file:///srv/data/a.csv", "file:///srv/data/a.csv", true},
		{"/srv/data", "FILE:///etc/passwd", "FILE:///etc/passwd", false},
		{"/srv/data", "../data2/a.csv", "/srv/data2/a.csv", false},
	} {
		name := trust.Below(c.base, c.name)
		if below := trust.IsBelow(c.base, name); name != c.want || below != c.below {
			t.Errorf("%s at %s: %s, below it: %v", c.name, c.base, name, below)
		}
	}
}

func TestIsBelow_Links(t *testing.T) {
	folder, outside := t.TempDir(), t.TempDir()
	testkit.Must(t, os.Symlink(outside, filepath.Join(folder, "link")))
	testkit.Must(t, os.Symlink(folder, filepath.Join(outside, "back")))
	for name, want := range map[string]bool{"link/a.csv": false, "link/back/a.csv": true, "a.csv": true} {
		if got := trust.IsBelow(folder, trust.Below(folder, name)); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
