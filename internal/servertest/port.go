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

// Ports of servers come from below the range that systems give ports away from
// by themselves, so that no client and no test server of another package gets
// one while its server is being started again. Each leaves room for the bus of a
// Redis cluster, which is 10,000 higher.
const (
	firstPort = 10_000
	ports     = 10_000
)

// claim finds a port that is free and keeps it from other test processes until
// the claim is closed: the UDP port of the same number, which no server uses.
func claim() (int, io.Closer, error) {
	var listen net.ListenConfig
	from := rand.IntN(ports)
	for i := range ports {
		port := firstPort + (from+i)%ports
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		held, err := listen.ListenPacket(context.Background(), "udp", address)
		if err != nil {
			continue
		}
		l, err := listen.Listen(context.Background(), "tcp", address)
		if err == nil {
			return port, held, l.Close()
		}
		_ = held.Close() // nothing was sent
	}
	return 0, nil, errors.New("no port of 127.0.0.1 is free")
}

// Refused is host and port of a place that refuses connections until the test
// ends. The port is taken, so that no server that starts meanwhile gets it.
func Refused(t testing.TB) string {
	t.Helper()
	syscall.ForkLock.RLock() // no program that is started meanwhile inherits it
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
	at, err := syscall.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(at.(*syscall.SockaddrInet4).Port))
}
