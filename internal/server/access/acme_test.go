package access_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// The certificate of the ACME server Pebble, whose program is QTYPE_PEBBLE: it connects
// to the server for the challenge, as Let's Encrypt does.
func TestServer_ACME(t *testing.T) {
	program := os.Getenv("QTYPE_PEBBLE")
	if program == "" {
		servertest.Need(t, fmt.Errorf("QTYPE_PEBBLE is not the path of pebble: %w", servertest.ErrMissing))
	}
	const domain = "app.qtype.test"
	pebble := freePort(t)
	certFile, keyFile := writeCertificate(t, "localhost")
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(testkit.ReadFile(t, certFile)))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}, Timeout: 10 * time.Second}
	t.Cleanup(client.CloseIdleConnections)
	directory := fmt.Sprintf("https://localhost:%d/dir", pebble)
	cache := filepath.Join(t.TempDir(), "certificates")
	cfg := access.Config{HTTP: client, TLS: access.TLS{Domains: []string{domain}, Cache: cache, Directory: directory}}
	s := start(t, cfg, nil)
	address := strings.TrimPrefix(s.url, "https://")
	startPebble(t, program, map[string]any{"listenAddress": fmt.Sprint("127.0.0.1:", pebble), "certificate": certFile, "privateKey": keyFile,
		"tlsPort": s.port(t), "httpPort": s.port(t), "retryAfter": map[string]int{"authz": 1, "order": 1}})
	waitFor(t, client, directory)

	first := leaf(t, address, domain)
	if first == nil || !strings.HasPrefix(first.Issuer.CommonName, "Pebble Intermediate") || !slices.Equal(first.DNSNames, []string{domain}) {
		t.Fatalf("got %v; log: %s", first, s.log)
	}
	if leaf(t, address, "other.qtype.test") != nil {
		t.Error("a certificate for another domain")
	}
	again := start(t, cfg, nil)
	if got := leaf(t, strings.TrimPrefix(again.url, "https://"), domain); got == nil || got.SerialNumber.Cmp(first.SerialNumber) != 0 {
		t.Error("after a restart the stored certificate is not used")
	}
	if info, err := os.Stat(cache); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder of certificates: %v, %v", info, err)
	}
}

// leaf returns the certificate of a server for a domain, nil if there is none.
func leaf(t *testing.T, address, domain string) *x509.Certificate {
	t.Helper()
	dialer := &tls.Dialer{Config: &tls.Config{ServerName: domain, InsecureSkipVerify: true, NextProtos: []string{"h2"}}}
	conn, err := dialer.DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Log(err)
		return nil
	}
	defer conn.Close()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0]
}

func (s *server) port(t *testing.T) int {
	t.Helper()
	address, err := net.ResolveTCPAddr("tcp", s.url[strings.Index(s.url, "//")+2:])
	testkit.Must(t, err)
	return address.Port
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// startPebble starts an ACME server that resolves all names to 127.0.0.1.
func startPebble(t *testing.T, program string, config map[string]any) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"pebble": config})
	testkit.Must(t, err)
	server := testkit.Command(t, program, "-config", testkit.WriteFile(t, "pebble.json", string(text)), "-dnsserver", serveNames(t))
	server.Env = append(os.Environ(), "PEBBLE_VA_NOSLEEP=1")
	lines := &logBuffer{}
	server.Stdout, server.Stderr = lines, lines
	testkit.Must(t, server.Start())
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
		if t.Failed() {
			t.Log(lines)
		}
	})
}

// waitFor waits until a server answers.
func waitFor(t *testing.T, client *http.Client, url string) {
	t.Helper()
	for tick := time.NewTicker(20 * time.Millisecond); ; <-tick.C {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		testkit.Must(t, err)
		response, err := client.Do(r)
		if err == nil {
			_ = response.Body.Close()
			return
		}
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
}

// serveNames is a name server over TCP that answers 127.0.0.1 for every name. It returns
// its address.
func serveNames(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	var open sync.WaitGroup
	open.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() {
				defer conn.Close()
				for err := error(nil); err == nil; {
					err = answerName(conn)
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		open.Wait()
	})
	return l.Addr().String()
}

// answerName answers one question. Messages are preceded by their length.
func answerName(conn net.Conn) error {
	var size uint16
	if err := binary.Read(conn, binary.BigEndian, &size); err != nil {
		return err
	}
	packed := make([]byte, size)
	if _, err := io.ReadFull(conn, packed); err != nil {
		return err
	}
	var m dnsmessage.Message
	if err := m.Unpack(packed); err != nil {
		return err
	}
	m.Response, m.Additionals = true, nil
	for _, q := range m.Questions {
		if q.Type == dnsmessage.TypeA {
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}, Body: &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}})
		}
	}
	packed, err := m.Pack()
	if err == nil {
		_, err = conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(packed))), packed...))
	}
	return err
}
