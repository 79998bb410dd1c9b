package lsp

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/qtype-dev/qtype/internal/remotefs"
)

// TestLibraryAsksOnce: a file is asked for again only when it is old or a document
// was saved, a failure sooner; and a server that is away takes nothing back.
func TestLibraryAsksOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newRemoteCache()
		jobs := 0
		l.startJob = func(func(context.Context)) { jobs++ }
		l.setEnabled(true)
		read := func(want string, problem error, asked int) {
			t.Helper()
			text, err := l.read(t.Context(), "https://x.example/a.yaml", "")
			if string(text) != want || !errors.Is(err, problem) || jobs != asked {
				t.Errorf("read %q and %v after %d calls, not %q, %v, %d", text, err, jobs, want, problem, asked)
			}
		}
		book := func() *remoteFile { return l.files[remoteKey{"https://x.example/a.yaml", ""}] }
		read("", remotePending, 1)
		read("", remotePending, 1)
		l.store(book(), []byte("one"), remotefs.Version{}, nil)
		time.Sleep(remoteTTL - time.Second)
		read("one", nil, 1)
		time.Sleep(time.Second)
		read("one", nil, 2)
		away := &remotefs.AccessError{Why: "nobody is there"}
		l.store(book(), nil, remotefs.Version{}, away)
		read("one", nil, 2)
		time.Sleep(remoteRetry)
		read("one", nil, 3)
		gone := &remotefs.NotFoundError{}
		l.store(book(), nil, remotefs.Version{}, gone)
		read("", gone, 3)
		l.expire()
		read("", gone, 4)
		l.setEnabled(false)
		read("", remoteDisabled, 4)
	})
}
