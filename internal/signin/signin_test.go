package signin_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/qtype-dev/qtype/internal/signin"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// TestFolder: tokens are found by the server and the client only, and a file that is broken
// is an error that names it.
func TestFolder(t *testing.T) {
	folder := signin.Folder(filepath.Join(t.TempDir(), "state", "signin"))
	key := signin.Key{Server: "https://library.example/mcp", ClientID: "shop"}
	if got, err := folder.Load(key); got != nil || err != nil {
		t.Errorf("before the sign-in: %v, %v", got, err)
	}
	tokens := &signin.Tokens{Server: key.Server, TokenURL: "https://login.example/token", AccessToken: "a1", RefreshToken: "r1"}
	testkit.Must(t, folder.Save(key, tokens))
	tokens.Set(&oauth2.Token{AccessToken: "a2", Expiry: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)})
	testkit.Must(t, folder.Save(key, tokens))
	got, err := folder.Load(key)
	testkit.Must(t, err)
	if *got != *tokens || got.RefreshToken != "r1" {
		t.Errorf("got %+v, want %+v", got, tokens)
	}
	if files, _ := os.ReadDir(string(folder)); len(files) != 1 {
		t.Errorf("there are %d files", len(files))
	}
	for _, other := range []signin.Key{{Server: key.Server}, {Server: "https://other.example", ClientID: "shop"}, {Server: key.Server, ClientID: "shop", Issuer: "https://login.example"}, {Server: key.Server, ClientID: "shop", Scopes: "all"}} {
		if got, err := folder.Load(other); got != nil || err != nil {
			t.Errorf("%+v: got %v, %v", other, got, err)
		}
	}
	files, err := filepath.Glob(filepath.Join(string(folder), "*.json"))
	testkit.Must(t, err)
	testkit.Must(t, os.WriteFile(files[0], []byte("{"), 0o600))
	if _, err := folder.Load(key); err == nil || !strings.Contains(err.Error(), files[0]) {
		t.Errorf("a broken file: %v", err)
	}
	for _, want := range []bool{true, false} {
		if removed, err := folder.Remove(key); removed != want || err != nil {
			t.Errorf("Remove: %v, %v", removed, err)
		}
	}
}
