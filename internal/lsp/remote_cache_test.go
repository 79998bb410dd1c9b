package lsp

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/qtype-dev/qtype/internal/remotefs"
)

// TestRemoteCache_Expiry checks when a file is fetched again: after its TTL, sooner
// after a failure, and when a document was saved. An unreachable server does not
// invalidate the cached text.
func TestRemoteCache_Expiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newRemoteCache()
		jobs := 0
		c.startJob = func(func(context.Context)) { jobs++ }
		c.setEnabled(true)
		read := func(want string, problem error, fetches int) {
			t.Helper()
			text, err := c.read(t.Context(), "https://x.example/a.yaml", "")
			if string(text) != want || !errors.Is(err, problem) || jobs != fetches {
				t.Errorf("read %q and %v after %d calls, not %q, %v, %d", text, err, jobs, want, problem, fetches)
			}
		}
		cached := func() *remoteFile { return c.files[remoteKey{"https://x.example/a.yaml", ""}] }
		read("", remotePending, 1)
		read("", remotePending, 1)
		c.store(cached(), []byte("one"), remotefs.Version{}, nil)
		time.Sleep(remoteTTL - time.Second)
		read("one", nil, 1)
		time.Sleep(time.Second)
		read("one", nil, 2)
		away := &remotefs.AccessError{Why: "connection refused"}
		c.store(cached(), nil, remotefs.Version{}, away)
		read("one", nil, 2)
		time.Sleep(remoteRetry)
		read("one", nil, 3)
		gone := &remotefs.NotFoundError{}
		c.store(cached(), nil, remotefs.Version{}, gone)
		read("", gone, 3)
		c.expire()
		read("", gone, 4)
		c.setEnabled(false)
		read("", remoteDisabled, 4)
	})
}
