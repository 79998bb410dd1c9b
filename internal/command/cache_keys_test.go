package command

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
)

// TestCache_OfAddress: the refusal to open the cache of a document from an address names no flag that the
// command lacks.
func TestCache_OfAddress(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, caches, "https://example.com")
	}))
	defer site.Close()
	for _, args := range [][]string{{"cache", "stats"}, {"cache", "clear"}} {
		cmd := testkit.Command(t, "qtype", append(args, site.URL+"/app.qtype.yaml")...)
		cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "NO_PROXY=*")
		out, err := cmd.CombinedOutput()
		if text := string(out); err == nil || strings.Contains(text, "--") || !strings.Contains(text, "because it is from an address; pass the folder in place of the document") {
			t.Errorf("%v: %v: %s", args, err, text)
		}
	}
}
