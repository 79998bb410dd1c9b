package access

import (
	"net"
	"net/netip"
	"sync"
)

// addressShare is which part of all connections one address may have.
const addressShare = 10

// limitConnections returns a listener that closes connections above the limits at once:
// clients with many open connections cannot keep others out.
func (c *Control) limitConnections(l net.Listener) net.Listener {
	if c.limits.Connections < 0 {
		return l
	}
	return &limitedListener{Listener: l, total: newGauge(c.limits.Connections),
		each: newGauge(max(c.limits.Connections/addressShare, 1)), proxies: c.proxies}
}

// limitedListener counts connections. Those from loopback and from trusted proxies are
// limited only together: many clients share these addresses.
type limitedListener struct {
	net.Listener
	total, each *gauge
	proxies     proxyList
}

// Accept returns the next connection within the limits.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if !l.total.acquire("") {
			_ = conn.Close()
			continue
		}
		address := l.addressOf(conn)
		if address != "" && !l.each.acquire(address) {
			l.total.release("")
			_ = conn.Close()
			continue
		}
		return &countedConn{Conn: conn, release: sync.OnceFunc(func() {
			l.total.release("")
			if address != "" {
				l.each.release(address)
			}
		})}, nil
	}
}

// addressOf returns the address that a connection counts for, empty if it is shared.
func (l *limitedListener) addressOf(conn net.Conn) string {
	from, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return ""
	}
	ip := from.Addr().Unmap().WithZone("")
	if ip.IsLoopback() || l.proxies.contains(ip) {
		return ""
	}
	return clientNetwork(ip)
}

// countedConn ends counting when it is closed.
type countedConn struct {
	net.Conn
	release func()
}

// Close closes the connection.
func (c *countedConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}

// CloseWrite ends sending, as net/http does after the last response of a connection.
func (c *countedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
