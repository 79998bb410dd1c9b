package trust

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// Seen are the addresses that names of servers had when a document was read. A name that had
// others later does not lead to private servers. It is safe for concurrent use.
type Seen struct {
	mu sync.Mutex
	of map[string][]netip.Addr // by the name, without a port
}

// Add adds addresses of a host, which may have a port.
func (s *Seen) Add(host string, addresses ...netip.Addr) {
	if s == nil || len(addresses) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[string][]netip.Addr{}
	}
	name := nameOf(host)
	for _, ip := range addresses {
		if ip = ip.Unmap(); !slices.Contains(s.of[name], ip) {
			s.of[name] = append(s.of[name], ip)
		}
	}
}

// addresses returns the addresses of a host: itself, if it is one.
func (s *Seen) addresses(host string) []netip.Addr {
	name := nameOf(host)
	if ip, isNumber := parseHost(name); isNumber {
		return []netip.Addr{ip}
	}
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.of[name])
}

// nameOf returns the name of a host without its port.
func nameOf(host string) string {
	if name, ok := splitPort(host); ok {
		host = name
	}
	return normalHost(host)
}

// Unseen reports whether the document may call a host at private addresses, and they are not
// known yet. The caller resolves its name, and adds the addresses to Seen.
func (p *Policy) Unseen(host string) bool {
	return p.Restricted() && p.Seen != nil && p.knows(host) && len(p.Seen.addresses(host)) == 0
}

// isSeen reports whether a host that the document may call had an address before. Without
// an earlier address there is nothing to compare.
func (p *Policy) isSeen(host string, ip netip.Addr) bool {
	seen := p.Seen.addresses(host)
	return len(seen) == 0 || slices.Contains(seen, ip.Unmap()) || slices.ContainsFunc(seen, func(a netip.Addr) bool { return !a.IsValid() })
}

// Reading is one request for a file of a document, with its redirects: from a public server to
// a private one there is none. It is safe for concurrent use.
type Reading struct {
	seen *Seen

	mu     sync.Mutex
	public bool // a public server has redirected the request, or may do so
}

type readingKey struct{}

// WithReading returns a context of a request for a file of a document.
func WithReading(ctx context.Context, seen *Seen) context.Context {
	return context.WithValue(ctx, readingKey{}, &Reading{seen: seen})
}

// ReadingOf returns the Reading of a context; nil if there is none, which allows everything.
func ReadingOf(ctx context.Context) *Reading {
	r, _ := ctx.Value(readingKey{}).(*Reading)
	return r
}

// Request returns an error if the next server of a request is known to be private, and the one
// before was public. It is called for each redirect, also if no connection is made.
func (r *Reading) Request(host string) error {
	if r == nil {
		return nil
	}
	if IsPrivateHost(nameOf(host)) {
		return r.next(host, true)
	}
	for _, ip := range r.seen.addresses(host) {
		if err := r.next(host, !ip.IsValid() || IsPrivate(ip)); err != nil {
			return err
		}
	}
	return nil
}

// Dial is Request for the resolved address of a server.
func (r *Reading) Dial(host, resolved string) error {
	if r == nil {
		return nil
	}
	to, err := netip.ParseAddrPort(resolved)
	return r.next(host, err != nil || IsPrivate(to.Addr()))
}

// Connected records the address of a server.
func (r *Reading) Connected(host, resolved string) {
	if to, err := netip.ParseAddrPort(resolved); r != nil && err == nil {
		r.seen.Add(host, to.Addr())
	}
}

func (r *Reading) next(host string, private bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !private {
		r.public = true
		return nil
	}
	if r.public {
		return &RedirectError{Host: host}
	}
	return nil
}

// RedirectError reports that a public server redirected a request for a document to a private
// server.
type RedirectError struct{ Host string } // the private server

func (e *RedirectError) Error() string {
	return "a public server redirects to the private server " + e.Host + "; use the address of that server itself"
}

// StateFolder returns the folder of the user for what this program remembers; empty if
// there is none.
func StateFolder() string {
	home, _ := os.UserHomeDir()
	state := os.Getenv("XDG_STATE_HOME")
	switch {
	case os.Getenv("QTYPE_HOME") != "":
		return os.Getenv("QTYPE_HOME")
	case filepath.IsAbs(state):
		return filepath.Join(state, "qtype")
	case home == "":
		return ""
	}
	return filepath.Join(home, ".local", "state", "qtype")
}
