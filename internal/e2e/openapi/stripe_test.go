package openapi_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/testkit"
)

// stripeMock starts Stripe's own server for its document and returns its address.
func stripeMock(t *testing.T, program, document string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	port := l.Addr().(*net.TCPAddr).Port
	testkit.Must(t, l.Close())
	args := []string{"-http-port", fmt.Sprint(port), "-spec", document}
	if fixtures := filepath.Join(filepath.Dir(document), "fixtures", "stripe.json"); exists(fixtures) {
		args = append(args, "-fixtures", fixtures)
	}
	ctx, cancel := context.WithCancel(t.Context())
	server := exec.CommandContext(ctx, program, args...)
	testkit.Must(t, server.Start())
	t.Cleanup(func() {
		cancel()
		_ = server.Wait()
	})
	address := fmt.Sprintf("http://127.0.0.1:%d", port)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		resp, err := http.Get(address + "/v1/charges")
		if err == nil {
			_ = resp.Body.Close()
			return address
		}
	}
	t.Fatal("stripe-mock does not answer")
	return ""
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
