package lsp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/timer"
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

func (c *remoteCache) isEnabled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.enabled
}

// setEnabled enables or disables fetching and reports whether that is a change,
// which clears the cache.
func (c *remoteCache) setEnabled(on bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed := c.enabled != on
	if changed {
		c.enabled, c.files = on, map[remoteKey]*remoteFile{}
	}
	return changed
}

// expire makes each file be fetched again when it is next read.
func (c *remoteCache) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.files {
		if !f.expires.IsZero() {
			f.expires = time.Now()
		}
		f.stale = f.inFlight
	}
}

// read returns the cached content or error of a file and schedules a fetch if there
// is none or it has expired.
func (c *remoteCache) read(_ context.Context, address, base string) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.enabled {
		return nil, remoteDisabled
	}
	at := remoteKey{address, base}
	f := c.files[at]
	if f == nil {
		f = &remoteFile{}
		c.files[at] = f
	}
	if !f.queued && !time.Now().Before(f.expires) {
		f.queued = true
		c.startJob(func(ctx context.Context) { c.refresh(ctx, at, f) })
	}
	if f.expires.IsZero() {
		return nil, remotePending
	}
	return f.text, f.err
}

// text returns the content of a cached file, for any base.
func (c *remoteCache) text(address string) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for at, f := range c.files {
		if at.address == address && f.text != nil {
			return string(f.text), true
		}
	}
	return "", false
}

// refresh fetches a file if it is still included after a short delay, and again if
// expire was called meanwhile.
func (c *remoteCache) refresh(ctx context.Context, at remoteKey, f *remoteFile) {
	for more := true; more; {
		if timer.Sleep(ctx, remoteDebounce) != nil {
			return
		}
		if !c.isIncluded(at.address) {
			c.remove(at, f)
			return
		}
		more = c.call(ctx, at, f)
	}
	c.evictUnused()
}

// call fetches a file and reports whether it must be fetched again.
func (c *remoteCache) call(ctx context.Context, at remoteKey, f *remoteFile) (more bool) {
	select {
	case c.callSlots <- struct{}{}:
		defer func() { <-c.callSlots }()
	case <-ctx.Done():
		return false
	}
	c.mu.Lock()
	f.inFlight = true
	c.mu.Unlock()
	text, version, err := fetch(ctx, at, f.version)
	if ctx.Err() != nil {
		return false
	}
	changed, more := c.store(f, text, version, err)
	if changed {
		c.onChange(at.address)
	}
	return more
}

// store records a response. changed reports whether the content or error differs
// from before, more whether the file must be fetched again. A nil text without an
// error means that the cached text is current.
func (c *remoteCache) store(f *remoteFile, text []byte, version remotefs.Version, err error) (changed, more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first, failed := f.expires.IsZero(), f.err
	more = f.stale
	f.queued, f.inFlight, f.stale = more, false, false
	if err != nil {
		f.expires = time.Now().Add(remoteRetry)
		if unreachable := new(remotefs.AccessError); f.text != nil && errors.As(err, &unreachable) {
			return false, more // The server is unreachable: the cached text is better than nothing.
		}
		f.err, f.text, f.version = err, nil, remotefs.Version{}
		return first || failed == nil || failed.Error() != err.Error(), more
	}
	isNew := text != nil && !bytes.Equal(text, f.text)
	f.expires, f.err, f.version = time.Now().Add(remoteTTL), nil, version
	if isNew {
		f.text = text
	}
	return first || failed != nil || isNew, more
}

// remove removes a file that no document includes.
func (c *remoteCache) remove(at remoteKey, f *remoteFile) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f.queued = false
	if c.files[at] == f {
		delete(c.files, at)
	}
}

// evictUnused removes files that no document includes, if there are many.
func (c *remoteCache) evictUnused() {
	c.mu.Lock()
	var all []remoteKey
	if len(c.files) > maxRemoteFiles {
		for at, f := range c.files {
			if !f.queued {
				all = append(all, at)
			}
		}
	}
	c.mu.Unlock()
	for _, at := range all {
		if c.isIncluded(at.address) {
			continue
		}
		c.mu.Lock()
		delete(c.files, at)
		c.mu.Unlock()
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
