package access_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// Tokens of a real OpenID provider: the package oidc-provider in QTYPE_OIDC_PROVIDER, a
// folder node_modules.
func TestControl_RealProvider(t *testing.T) {
	modules := os.Getenv("QTYPE_OIDC_PROVIDER")
	if modules == "" {
		servertest.Need(t, fmt.Errorf("QTYPE_OIDC_PROVIDER is not a folder node_modules with oidc-provider: %w", servertest.ErrMissing))
	}
	port := freePort(t)
	startProvider(t, modules, port)
	address := fmt.Sprintf("http://127.0.0.1:%d", port)
	const api, short = "https://qtype.test/api", "https://qtype.test/short"
	s := start(t, access.Config{OIDC: access.OIDC{Issuer: address, Audience: api}}, nil)
	ada, ci := issue(t, address, "ada", api), issue(t, address, "ci", api)
	if got := s.get(t, "/", bearer(ada)); got.body != "user:ada admin" {
		t.Errorf("ada: %d %s", got.status, got.body)
	}
	if got := s.get(t, "/", bearer(ci)); got.body != "user:ci build" {
		t.Errorf("ci: %d %s", got.status, got.body)
	}
	if got := s.get(t, "/", bearer(issue(t, address, "ada", short))); got.status != 401 || !strings.Contains(got.body, "another audience") {
		t.Errorf("another audience: %d %s", got.status, got.body)
	}
	expiring := start(t, access.Config{OIDC: access.OIDC{Issuer: address, Audience: short, Skew: -1}}, nil)
	token := issue(t, address, "ada", short)
	for tick := time.NewTicker(50 * time.Millisecond); ; <-tick.C { // until its second is over
		if got := expiring.get(t, "/", bearer(token)); got.status != 200 {
			if !strings.Contains(got.body, "the token is expired") {
				t.Errorf("expired: %d %s", got.status, got.body)
			}
			break
		}
	}
}

// startProvider starts the provider and waits until it accepts requests.
func startProvider(t *testing.T, modules string, port int) {
	t.Helper()
	provider := testkit.Command(t, "node", "testdata/provider.mjs", modules, fmt.Sprint(port))
	output, err := provider.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, provider.Start())
	t.Cleanup(func() {
		_ = provider.Process.Kill()
		_ = provider.Wait()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if lines.Text() == "ready" {
			return
		}
	}
	t.Fatal("the provider did not start")
}

// issue returns an access token of a client for an audience.
func issue(t *testing.T, address, client, audience string) string {
	t.Helper()
	form := url.Values{"grant_type": {"client_credentials"}, "resource": {audience}}
	r, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodPost, address+"/token", strings.NewReader(form.Encode()))
	testkit.Must(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(client, "secret-of-"+client)
	response, err := http.DefaultClient.Do(r)
	testkit.Must(t, err)
	defer response.Body.Close()
	var got struct {
		Token string `json:"access_token"`
	}
	testkit.Must(t, json.NewDecoder(response.Body).Decode(&got))
	return got.Token
}
