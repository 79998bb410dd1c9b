package servertest_test

import (
	"errors"
	"net"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/servertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRefused(t *testing.T) {
	address := servertest.Refused(t)
	if conn, err := net.Dial("tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("%s: %v, %v", address, conn, err)
	}
	if _, err := net.Listen("tcp", address); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("another server can listen on %s: %v", address, err)
	}
}

// TestServer_KeepsPort checks that the port stays reserved while the server is down.
func TestServer_KeepsPort(t *testing.T) {
	s, err := servertest.Redis()
	servertest.Need(t, err)
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	if s.Port < 10_000 || s.Port >= 20_000 {
		t.Errorf("port %d is in the ephemeral range", s.Port)
	}
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := net.ListenPacket("udp", s.Address()); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("the port of a stopped server is not reserved: %v", err)
	}
	if err := s.Restart(); err != nil {
		t.Error(err)
	}
}
