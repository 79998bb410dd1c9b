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
	startJob  func(func(context.Context)) // runs a job beside the rest until the server ends
	isWanted  func(address string) bool   // an open document includes it still
	onChange  func(address string)        // what is known of it is something else now
	callSlots chan struct{}               // holds one for each call that is made

	mu      sync.Mutex
	enabled bool // the editor wants files to be fetched
	files   map[remoteKey]*remoteFile
}

// shelf is where a file is kept. What a server may lead to depends on the base.
type remoteKey struct{ address, base string }

// remoteFile is a file of another machine.
type remoteFile struct {
	text     []byte
	err      error // why it could not be fetched the last time; nil where it could
	version  remotefs.Version
	queued   bool      // it is being fetched, or soon will be
	inFlight bool      // the server is being asked
	stale    bool      // it must be asked once more: what it answers now may be older than what is wanted
	expires  time.Time // when it is asked for again; zero before the first answer
}

// remoteError says why a file of another machine is not there.
type remoteError string

// Why a file of another machine is not there. These are no faults of the document.
const (
	remoteDisabled remoteError = "it is remote, and not read in an editor"
	remotePending  remoteError = "it is remote, and being fetched"
)

// Error is the reason.
func (e remoteError) Error() string { return string(e) }

// newLibrary makes an empty library that fetches nothing.
func newRemoteCache() *remoteCache {
	return &remoteCache{callSlots: make(chan struct{}, maxRemoteCalls), files: map[remoteKey]*remoteFile{}}
}

// isOn tells whether files are fetched.
func (l *remoteCache) isEnabled() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.enabled
}

// setEnabled switches fetching on or off, and tells whether that is a change. What was
// fetched before is forgotten.
func (l *remoteCache) setEnabled(on bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	changed := l.enabled != on
	if changed {
		l.enabled, l.files = on, map[remoteKey]*remoteFile{}
	}
	return changed
}

// expire lets everything be asked for again where it is next read.
func (l *remoteCache) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.files {
		if !b.expires.IsZero() {
			b.expires = time.Now()
		}
		b.stale = b.inFlight
	}
}

// read answers what is known of a file, and has it fetched where that is nothing
// or old.
func (l *remoteCache) read(_ context.Context, address, base string) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.enabled {
		return nil, remoteDisabled
	}
	at := remoteKey{address, base}
	b := l.files[at]
	if b == nil {
		b = &remoteFile{}
		l.files[at] = b
	}
	if !b.queued && !time.Now().Before(b.expires) {
		b.queued = true
		l.startJob(func(ctx context.Context) { l.refresh(ctx, at, b) })
	}
	if b.expires.IsZero() {
		return nil, remotePending
	}
	return b.text, b.err
}

// text answers a file that was fetched, for whichever base.
func (l *remoteCache) text(address string) (string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for at, b := range l.files {
		if at.address == address && b.text != nil {
			return string(b.text), true
		}
	}
	return "", false
}

// refresh fetches a file, once it has been wanted for a moment, and again where
// everything was let expire meanwhile.
func (l *remoteCache) refresh(ctx context.Context, at remoteKey, b *remoteFile) {
	for more := true; more; {
		if !sleep(ctx, remoteDebounce) {
			return
		}
		if !l.isWanted(at.address) {
			l.remove(at, b)
			return
		}
		more = l.call(ctx, at, b)
	}
	l.evictUnused()
}

// call asks the server for a file, and tells whether it must be asked again.
func (l *remoteCache) call(ctx context.Context, at remoteKey, b *remoteFile) (more bool) {
	select {
	case l.callSlots <- struct{}{}:
		defer func() { <-l.callSlots }()
	case <-ctx.Done():
		return false
	}
	l.mu.Lock()
	b.inFlight = true
	l.mu.Unlock()
	text, version, err := fetch(ctx, at, b.version)
	if ctx.Err() != nil {
		return false
	}
	news, more := l.store(b, text, version, err)
	if news {
		l.onChange(at.address)
	}
	return more
}

// pause waits, unless ctx ends.
func sleep(ctx context.Context, d time.Duration) bool {
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
	first, failed := b.expires.IsZero(), b.err
	more = b.stale
	b.queued, b.inFlight, b.stale = more, false, false
	if err != nil {
		b.expires = time.Now().Add(remoteRetry)
		if unreachable := new(remotefs.AccessError); b.text != nil && errors.As(err, &unreachable) {
			return false, more // the server could not be asked: what it said before is better than nothing
		}
		b.err, b.text, b.version = err, nil, remotefs.Version{}
		return first || failed == nil || failed.Error() != err.Error(), more
	}
	changed := text != nil && !bytes.Equal(text, b.text)
	b.expires, b.err, b.version = time.Now().Add(remoteTTL), nil, version
	if changed {
		b.text = text
	}
	return first || failed != nil || changed, more
}

// remove drops a file that nobody wants.
func (l *remoteCache) remove(at remoteKey, b *remoteFile) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b.queued = false
	if l.files[at] == b {
		delete(l.files, at)
	}
}

// evictUnused forgets the files that no document wants, where there are many.
func (l *remoteCache) evictUnused() {
	l.mu.Lock()
	var all []remoteKey
	if len(l.files) > maxRemoteFiles {
		for at, b := range l.files {
			if !b.queued {
				all = append(all, at)
			}
		}
	}
	l.mu.Unlock()
	for _, at := range all {
		if l.isWanted(at.address) {
			continue
		}
		l.mu.Lock()
		delete(l.files, at)
		l.mu.Unlock()
	}
}

// fetch asks a server for a file, which answers with no text where it has the
// same version still.
func fetch(ctx context.Context, at remoteKey, have remotefs.Version) (text []byte, now remotefs.Version, err error) {
	ctx, cancel := context.WithTimeout(ctx, remoteWait)
	defer cancel()
	client := &remotefs.Client{IdleTimeout: remoteIdleTimeout, Allow: remotefs.Within(at.base)}
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
