package servertest

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
	"testing"
)

// Ports of servers are below the ephemeral range, so that no client and no test server
// of another package gets one while its server restarts. The bus of a Redis cluster
// uses the port 10,000 higher.
const (
	firstPort = 10_000
	ports     = 10_000
)

// claim finds a free port and reserves it from other test processes until the claim is
// closed, by the UDP port of the same number, which no server uses.
func claim() (int, io.Closer, error) {
	var listen net.ListenConfig
	from := rand.IntN(ports)
	for i := range ports {
		port := firstPort + (from+i)%ports
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		reservation, err := listen.ListenPacket(context.Background(), "udp", address)
		if err != nil {
			continue
		}
		l, err := listen.Listen(context.Background(), "tcp", address)
		if err == nil {
			return port, reservation, l.Close()
		}
		_ = reservation.Close() // nothing was sent
	}
	return 0, nil, errors.New("no port of 127.0.0.1 is free")
}

// Refused returns an address that refuses connections until the test ends. The port is
// bound, so that no other server gets it.
func Refused(t testing.TB) string {
	t.Helper()
	syscall.ForkLock.RLock() // no process that starts meanwhile inherits it
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(socket)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(socket) }) // nothing was sent
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	bound, err := syscall.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(bound.(*syscall.SockaddrInet4).Port))
}
