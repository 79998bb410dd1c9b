package access

import (
	"crypto/sha256"
	"net/http"
	"time"
)

// CheckFilesNow makes the next requests check whether files changed, without waiting.
func CheckFilesNow(c *Control) {
	if c.keys != nil {
		c.keys.file.checkNow()
	}
	if c.certs != nil && c.certs.files != nil {
		c.certs.files.cert.checkNow()
		c.certs.files.key.checkNow()
	}
}

func (w *watchedFile) checkNow() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next = time.Time{}
}

// ExpireKeys makes the signing keys of the provider old, and forgets the stored answers.
func ExpireKeys(c *Control) {
	k := c.tokens.keys
	k.mu.Lock()
	k.fetched = k.fetched.Add(-2 * keysMaxAge)
	k.mu.Unlock()
	ForgetAnswers(c)
}

// ForgetAnswers makes the next unknown key fetch the keys again, without waiting.
func ForgetAnswers(c *Control) {
	t := c.tokens.keys.transport
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = nil
}

// Exported for fuzz tests.
var (
	ParseKeys    = func(text string) (int, error) { keys, err := parseKeys(text); return len(keys), err }
	ParseKeyFile = func(text string) (int, error) { keys, err := parseKeyFile(text); return len(keys), err }
)

// Buckets returns how many callers a limiter of a rate remembers after n callers.
func Buckets(n int, caller func(int) string) (int, error) {
	l, err := newLimiter(1, 1)
	if err != nil {
		return 0, err
	}
	for i := range n {
		l.take(caller(i))
	}
	return l.buckets.Len(), nil
}

// Open returns how many requests and streams are counted.
func Open(c *Control) (requests, streams, total int) {
	count := func(g *gauge) (n int) {
		g.mu.Lock()
		defer g.mu.Unlock()
		for _, open := range g.open {
			n += open
		}
		return n
	}
	return count(c.requests), count(c.streams), count(c.total)
}

// FindRepeated returns the name that is found if two entries have the same key, which
// New does not accept. The second one proves that the search does not end early.
func FindRepeated(key string) string {
	hash := sha256.Sum256([]byte(key))
	name, _ := keyring{{"first", hash}, {"second", hash}, {name: "other"}}.find(key)
	return name
}

// FindKey returns a function that searches a key among n keys.
func FindKey(n int) func(key string) bool {
	keys := make(keyring, n)
	for i := range keys {
		keys[i].hash[0], keys[i].hash[1] = byte(i), byte(i>>8)
	}
	return func(key string) bool {
		_, ok := keys.find(key)
		return ok
	}
}

// SetTransport replaces the guarded transport of a policy.
func SetTransport(p *AttachmentPolicy, t http.RoundTripper) { p.client.Transport = t }
