package testkit

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// ResolveNames makes the resolver of the process call a server of the test, which answers
// with the addresses of a name, one for each question, the last one again and again. Other
// names do not exist. Names end in a dot.
func ResolveNames(t testing.TB, names map[string][]string) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	Must(t, err)
	former := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
	var served sync.WaitGroup
	served.Go(func() { serveNames(conn, names) })
	t.Cleanup(func() {
		net.DefaultResolver = former
		_ = conn.Close()
		served.Wait()
	})
}

// serveNames answers until the connection is closed.
func serveNames(conn net.PacketConn, names map[string][]string) {
	left := map[string][]string{}
	for name, addresses := range names {
		left[name] = addresses
	}
	packet := make([]byte, 1500)
	for {
		n, from, err := conn.ReadFrom(packet)
		if err != nil {
			return
		}
		if answer := answerTo(packet[:n], left); answer != nil {
			_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
			_, _ = conn.WriteTo(answer, from) // the resolver tries again
		}
	}
}

// answerTo returns the answer to a question; nil for what is none.
func answerTo(packet []byte, left map[string][]string) []byte {
	var m dnsmessage.Message
	if m.Unpack(packet) != nil || len(m.Questions) != 1 {
		return nil
	}
	q := m.Questions[0]
	m.Response, m.Authoritative, m.Additionals = true, true, nil
	addresses := left[q.Name.String()]
	switch {
	case len(addresses) == 0:
		m.RCode = dnsmessage.RCodeNameError
	case q.Type == dnsmessage.TypeA:
		m.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET},
			Body:   &dnsmessage.AResource{A: netip.MustParseAddr(addresses[0]).As4()}}}
		if len(addresses) > 1 {
			left[q.Name.String()] = addresses[1:]
		}
	}
	answer, err := m.Pack()
	if err != nil {
		return nil
	}
	return answer
}
