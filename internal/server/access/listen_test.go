package access_test

import (
	"testing"

	"github.com/qtype-dev/qtype/internal/server/access"
)

func TestCheckListen(t *testing.T) {
	for host, loopback := range map[string]bool{
		"127.0.0.1": true, "127.1.2.3": true, "::1": true, "[::1]": true, "localhost": true, "LOCALHOST": true, "::ffff:127.0.0.1": true,
		"": false, "0.0.0.0": false, "::": false, "192.168.1.2": false, "8.8.8.8": false, "example.com": false, "localhost.example.com": false, "127.0.0.1.nip.io": false, "0": false,
	} {
		if err := access.CheckListen(host, false, false); (err == nil) != loopback {
			t.Errorf("%q without authentication: %v", host, err)
		}
		if err := access.CheckListen(host, true, false); err != nil {
			t.Errorf("%q with authentication: %v", host, err)
		}
		if err := access.CheckListen(host, false, true); err != nil {
			t.Errorf("%q, insecure: %v", host, err)
		}
	}
}
