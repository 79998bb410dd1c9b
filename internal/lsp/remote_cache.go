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

// Limits of reading remote includes.
const (
	remoteDebounce    = time.Second      // how long an address must remain in a document before it is read: typing one passes through others
	remoteTTL         = 5 * time.Minute  // how long a response is valid; saving a document ends it
	remoteRetry       = 30 * time.Second // how long a failure is valid
	remoteWait        = 30 * time.Second // the timeout of one file, as in package loader
	remoteIdleTimeout = 10 * time.Second // the timeout without data, as in package loader
	remoteBytes       = 4<<20 + 1        // the size limit of one file, plus one byte so that the loader can detect larger files
	maxRemoteFiles    = 256              // files above this number are evicted if no document includes them
	maxRemoteCalls    = 4                // concurrent calls
)

// remoteCache caches remote includes. Analyses never wait: a missing file is
// fetched in the background and the document analyzed again. It is safe for
// concurrent use.
type remoteCache struct {
	startJob   func(func(context.Context)) // runs a job until the server ends
	isIncluded func(address string) bool   // reports whether an open document includes the address
	onChange   func(address string)        // called when a file or its error changed
	callSlots  chan struct{}               // holds one element per running call

	mu      sync.Mutex
	enabled bool
	files   map[remoteKey]*remoteFile
}

// remoteKey identifies a file. Redirects are allowed within the base only, so the
// result depends on it.
type remoteKey struct{ address, base string }

// remoteFile is a cached include.
type remoteFile struct {
	text     []byte
	err      error // of the last attempt, nil if it succeeded
	version  remotefs.Version
	queued   bool      // a fetch is scheduled or running
	inFlight bool      // a call is running
	stale    bool      // the call that is running started before expire
	expires  time.Time // when the file is fetched again; zero before the first response
}

// remoteError is the reason why a remote file is not available yet. It is not an
// error of the document.
type remoteError string

// The reasons.
const (
	remoteDisabled remoteError = "remote includes are disabled in the editor"
	remotePending  remoteError = "the remote include is being fetched"
)

// Error returns the reason.
func (e remoteError) Error() string { return string(e) }

// newRemoteCache returns a disabled, empty cache.
func newRemoteCache() *remoteCache {
	return &remoteCache{callSlots: make(chan struct{}, maxRemoteCalls), files: map[remoteKey]*remoteFile{}}
}

func (l *remoteCache) isEnabled() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.enabled
}

// setEnabled enables or disables fetching and reports whether that is a change,
// which clears the cache.
func (l *remoteCache) setEnabled(on bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	changed := l.enabled != on
	if changed {
		l.enabled, l.files = on, map[remoteKey]*remoteFile{}
	}
	return changed
}

// expire makes each file be fetched again when it is next read.
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

// read returns the cached content or error of a file and schedules a fetch if there
// is none or it has expired.
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

// text returns the content of a cached file, whatever its base.
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

// refresh fetches a file if it is still included after a short delay, and again if
// expire was called meanwhile.
func (l *remoteCache) refresh(ctx context.Context, at remoteKey, b *remoteFile) {
	for more := true; more; {
		if !sleep(ctx, remoteDebounce) {
			return
		}
		if !l.isIncluded(at.address) {
			l.remove(at, b)
			return
		}
		more = l.call(ctx, at, b)
	}
	l.evictUnused()
}

// call fetches a file and reports whether it must be fetched again.
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

// sleep waits for d and reports whether it did; false if ctx is done before.
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

// store records a response. changed reports whether the content or error differs
// from before, more whether the file must be fetched again. A nil text without an
// error means that the cached text is current.
func (l *remoteCache) store(b *remoteFile, text []byte, version remotefs.Version, err error) (news, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first, failed := b.expires.IsZero(), b.err
	more = b.stale
	b.queued, b.inFlight, b.stale = more, false, false
	if err != nil {
		b.expires = time.Now().Add(remoteRetry)
		if unreachable := new(remotefs.AccessError); b.text != nil && errors.As(err, &unreachable) {
			return false, more // The server is unreachable: the cached text is better than nothing.
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

// remove removes a file that no document includes.
func (l *remoteCache) remove(at remoteKey, b *remoteFile) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b.queued = false
	if l.files[at] == b {
		delete(l.files, at)
	}
}

// evictUnused removes files that no document includes, if there are many.
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
		if l.isIncluded(at.address) {
			continue
		}
		l.mu.Lock()
		delete(l.files, at)
		l.mu.Unlock()
	}
}

// fetch reads a file. It returns a nil text if the file still has the given
// version.
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
