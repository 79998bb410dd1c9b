package trust_test

import (
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/trust"
)

func TestPolicy_Nil(t *testing.T) {
	var p *trust.Policy
	for _, err := range []error{p.Read("/etc/passwd"), p.Write("/x"), p.Env("A"), p.Program("sh"), p.Service("h"), p.Store("sqlite:x"), p.Credential("A", "h", false), p.Identity("x"), p.Provider("x"), p.Dial("h:1", "127.0.0.1:1")} {
		if err != nil {
			t.Error(err)
		}
	}
}

func TestPolicy_Address(t *testing.T) {
	p := trust.ForDocument("https://docs.example.com/a/app.yaml", false, trust.Grants{Hosts: []string{"10.0.0.7", "db.internal:5432"}}, nil)
	for address, allowed := range map[string]bool{
		"https://docs.example.com/b": true,
		"https://other.example.com/": true,
		"http://127.0.0.1/":          false,
		"http://localhost:8080/":     false,
		"http://a.localhost/":        false,
		"http://[::1]/":              false,
		"http://[::ffff:10.0.0.8]/":  false,
		"http://169.254.169.254/":    false,
		"http://10.0.0.7:9000/":      true,
	} {
		u, err := url.Parse(address)
		testkit.Must(t, err)
		if got := p.Address(u) == nil; got != allowed {
			t.Errorf("%s: allowed %v", address, got)
		}
	}
	for _, c := range []struct {
		host, resolved string
		allowed        bool
	}{
		{"rebound.example.com:80", "127.0.0.1:80", false},
		{"rebound.example.com:80", "[fd00::1]:80", false},
		{"public.example.com:80", "93.184.216.34:80", true},
		{"docs.example.com:443", "10.1.2.3:443", true},
		{"x:1", "not an address", false},
	} {
		if got := p.Dial(c.host, c.resolved) == nil; got != c.allowed {
			t.Errorf("%s at %s: allowed %v", c.host, c.resolved, got)
		}
	}
}

func TestPolicy_Buckets(t *testing.T) {
	p := trust.ForDocument("s3://team/apps/app.yaml", false, trust.Grants{Hosts: []string{"shared"}}, nil)
	for address, allowed := range map[string]bool{
		"s3://team/apps/data.csv":        true,
		"s3://team/other.csv":            false,
		"s3://team/apps/../other.csv":    false,
		"s3://private/x":                 false,
		"gs://team/apps/data.csv":        false,
		"s3://shared/x":                  true,
		"https://example.com/public.csv": true,
	} {
		if got := p.Read(address) == nil; got != allowed {
			t.Errorf("%s: allowed %v", address, got)
		}
	}
	if p.Write("s3://team/apps/x") == nil {
		t.Error("it may write to its bucket")
	}
}

// TestPolicy_Schemes has paths that other packages take for local files.
func TestPolicy_Schemes(t *testing.T) {
	folder := t.TempDir()
	p := trust.ForDocument("app.yaml", false, trust.Grants{}, &trust.Limits{File: "policy.yaml", Folders: []string{folder}})
	for _, path := range []string{"/etc/passwd", "file:///etc/passwd", "FILE:///etc/passwd", "Local:///etc/passwd", "a b://../../etc/passwd", "c:///etc/passwd"} {
		if p.Read(path) == nil || p.Write(path) == nil {
			t.Errorf("%s is allowed", path)
		}
	}
	if err := p.Read("FILE://" + folder + "/x"); err != nil {
		t.Error(err)
	}
}

func TestPolicy_Stores(t *testing.T) {
	out := t.TempDir()
	p := trust.ForDocument("https://h/app.yaml", false, trust.Grants{OutDir: out, Hosts: []string{"db"}}, nil)
	for address, allowed := range map[string]bool{
		"memory:":                       true,
		"sqlite:" + out + "/m.db":       true,
		"sqlite:////etc/m.db":           false,
		"file:///etc/m.db":              false,
		"sqlite:" + out + "/../m.db":    false,
		"postgres://u:p@db/x":           true,
		"postgres://u:p@db/x?host=evil": false,
		"postgres:///x":                 false,
		"redis://evil:6379":             false,
		"host=evil":                     false,
	} {
		if got := p.Store(address) == nil; got != allowed {
			t.Errorf("%s: allowed %v", address, got)
		}
	}
}

func TestIsWithin(t *testing.T) {
	folder, other := t.TempDir(), t.TempDir()
	testkit.Must(t, os.Symlink(other, filepath.Join(folder, "link")))
	testkit.Must(t, os.Symlink(filepath.Join(other, "later"), filepath.Join(folder, "dangling")))
	for path, want := range map[string]bool{
		".": true, "a": true, "a/b/c": true, "..": false, "../x": false, "a/../../x": false,
		"link": false, "link/x": false, "link/a/b": false, "dangling": false, "dangling/x": false,
	} {
		if got := trust.IsWithin(folder, folder+"/"+path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
	if trust.IsWithin("", "x") {
		t.Error("no folder contains x")
	}
}

func TestLimits_Hosts(t *testing.T) {
	limits := &trust.Limits{File: "policy.yaml", Hosts: []string{"api.openai.com", "*.example.com", "db:5432"}}
	p := trust.ForDocument("app.yaml", false, trust.Grants{Hosts: []string{"evil.com"}}, limits)
	for host, allowed := range map[string]bool{
		"api.openai.com:443": true, "API.openai.com": true, "a.example.com": true, "a.b.example.com:80": true, "example.com": false,
		"badexample.com": false, "evil.com": false, "db:5432": true, "db:6379": false, "api.openai.com.evil.com": false,
	} {
		if got := p.Service(host) == nil; got != allowed {
			t.Errorf("%s: allowed %v", host, got)
		}
	}
}

func TestIsPrivate(t *testing.T) {
	for text, want := range map[string]bool{"127.0.0.1": true, "64:ff9b::a00:1": true, "2002:a00:1::": true, "8.8.8.8": false, "2606:4700::1111": false} {
		if got := trust.IsPrivate(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
