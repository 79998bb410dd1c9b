package lsp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/remotefs"
)

// How files of other machines are fetched, where the editor wants that.
const (
	remoteDebounce    = time.Second      // how long an address must stand in a document: who types one passes many others
	remoteTTL         = 5 * time.Minute  // how long what a server said is believed; a save of a document ends it
	remoteRetry       = 30 * time.Second // the same for a failure
	remoteWait        = 30 * time.Second // what one file may take, as the loader has it for those of a document
	remoteIdleTimeout = 10 * time.Second // how long a server may say nothing, as the loader has it
	remoteBytes       = 4<<20 + 1        // of one file; one byte more than the loader takes, so that it can tell
	maxRemoteFiles    = 256              // files that are kept; above that, those that no document wants are forgotten
	maxRemoteCalls    = 4                // calls at the same time
)

// remoteCache has the files of other machines that documents include. An analysis
// never waits for it: what is not there yet is fetched beside it, and the analysis
// is made again when it has come. It is safe for concurrent use.
type remoteCache struct {
	start   func(func(context.Context)) // runs a job beside the rest until the server ends
	wanted  func(address string) bool   // an open document includes it still
	arrived func(address string)        // what is known of it is something else now
	calls   chan struct{}               // holds one for each call that is made

	mu    sync.Mutex
	on    bool // the editor wants files to be fetched
	books map[shelf]*remoteFile
}

// shelf is where a file is kept. What a server may lead to depends on the base.
type shelf struct{ address, base string }

// remoteFile is a file of another machine.
type remoteFile struct {
	text    []byte
	err     error // why it could not be fetched the last time; nil where it could
	version remotefs.Version
	asked   bool      // it is being fetched, or soon will be
	calling bool      // the server is being asked
	again   bool      // it must be asked once more: what it answers now may be older than what is wanted
	until   time.Time // when it is asked for again; zero before the first answer
}

// remoteError says why a file of another machine is not there.
type remoteError string

// Why a file of another machine is not there. These are no faults of the document.
const (
	remoteOff     remoteError = "it is remote, and not read in an editor"
	remotePending remoteError = "it is remote, and being fetched"
)

// Error is the reason.
func (e remoteError) Error() string { return string(e) }

// newLibrary makes an empty library that fetches nothing.
func newLibrary() *remoteCache {
	return &remoteCache{calls: make(chan struct{}, maxRemoteCalls), books: map[shelf]*remoteFile{}}
}

// isOn tells whether files are fetched.
func (l *remoteCache) isOn() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.on
}

// setEnabled switches fetching on or off, and tells whether that is a change. What was
// fetched before is forgotten.
func (l *remoteCache) setEnabled(on bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	changed := l.on != on
	if changed {
		l.on, l.books = on, map[shelf]*remoteFile{}
	}
	return changed
}

// expire lets everything be asked for again where it is next read.
func (l *remoteCache) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.books {
		if !b.until.IsZero() {
			b.until = time.Now()
		}
		b.again = b.calling
	}
}

// read answers what is known of a file, and has it fetched where that is nothing
// or old.
func (l *remoteCache) read(_ context.Context, address, base string) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.on {
		return nil, remoteOff
	}
	at := shelf{address, base}
	b := l.books[at]
	if b == nil {
		b = &remoteFile{}
		l.books[at] = b
	}
	if !b.asked && !time.Now().Before(b.until) {
		b.asked = true
		l.start(func(ctx context.Context) { l.refresh(ctx, at, b) })
	}
	if b.until.IsZero() {
		return nil, remotePending
	}
	return b.text, b.err
}

// text answers a file that was fetched, for whichever base.
func (l *remoteCache) text(address string) (string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for at, b := range l.books {
		if at.address == address && b.text != nil {
			return string(b.text), true
		}
	}
	return "", false
}

// refresh fetches a file, once it has been wanted for a moment, and again where
// everything was let expire meanwhile.
func (l *remoteCache) refresh(ctx context.Context, at shelf, b *remoteFile) {
	for more := true; more; {
		if !pause(ctx, remoteDebounce) {
			return
		}
		if !l.wanted(at.address) {
			l.remove(at, b)
			return
		}
		more = l.call(ctx, at, b)
	}
	l.evictUnused()
}

// call asks the server for a file, and tells whether it must be asked again.
func (l *remoteCache) call(ctx context.Context, at shelf, b *remoteFile) (more bool) {
	select {
	case l.calls <- struct{}{}:
		defer func() { <-l.calls }()
	case <-ctx.Done():
		return false
	}
	l.mu.Lock()
	b.calling = true
	l.mu.Unlock()
	text, version, err := fetch(ctx, at, b.version)
	if ctx.Err() != nil {
		return false
	}
	news, more := l.store(b, text, version, err)
	if news {
		l.arrived(at.address)
	}
	return more
}

// pause waits, unless ctx ends.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// store notes what a server answered, and tells whether that is something new and
// whether it must be asked again. A nil text without an error is the text that is
// there already.
func (l *remoteCache) store(b *remoteFile, text []byte, version remotefs.Version, err error) (news, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first, failed := b.until.IsZero(), b.err
	more = b.again
	b.asked, b.calling, b.again = more, false, false
	if err != nil {
		b.until = time.Now().Add(remoteRetry)
		if unreachable := new(remotefs.AccessError); b.text != nil && errors.As(err, &unreachable) {
			return false, more // the server could not be asked: what it said before is better than nothing
		}
		b.err, b.text, b.version = err, nil, remotefs.Version{}
		return first || failed == nil || failed.Error() != err.Error(), more
	}
	changed := text != nil && !bytes.Equal(text, b.text)
	b.until, b.err, b.version = time.Now().Add(remoteTTL), nil, version
	if changed {
		b.text = text
	}
	return first || failed != nil || changed, more
}

// remove drops a file that nobody wants.
func (l *remoteCache) remove(at shelf, b *remoteFile) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b.asked = false
	if l.books[at] == b {
		delete(l.books, at)
	}
}

// evictUnused forgets the files that no document wants, where there are many.
func (l *remoteCache) evictUnused() {
	l.mu.Lock()
	var all []shelf
	if len(l.books) > maxRemoteFiles {
		for at, b := range l.books {
			if !b.asked {
				all = append(all, at)
			}
		}
	}
	l.mu.Unlock()
	for _, at := range all {
		if l.wanted(at.address) {
			continue
		}
		l.mu.Lock()
		delete(l.books, at)
		l.mu.Unlock()
	}
}

// fetch asks a server for a file, which answers with no text where it has the
// same version still.
func fetch(ctx context.Context, at shelf, have remotefs.Version) (text []byte, now remotefs.Version, err error) {
	ctx, cancel := context.WithTimeout(ctx, remoteWait)
	defer cancel()
	client := &remotefs.Client{Silence: remoteIdleTimeout, Allow: remotefs.Within(at.base)}
	defer func() { err = errors.Join(err, client.Close()) }()
	in, now, err := client.OpenNewer(ctx, at.address, have)
	if in == nil || err != nil {
		return nil, now, err
	}
	defer in.Close()
	text, err = io.ReadAll(io.LimitReader(in, remoteBytes))
	if text == nil {
		text = []byte{}
	}
	return text, now, err
}
