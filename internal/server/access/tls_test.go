package access_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// makeCertificate returns a self-signed certificate and its key in PEM.
func makeCertificate(t testing.TB, name string) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testkit.Must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Unix(0, 0), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	testkit.Must(t, err)
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	testkit.Must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
}

func writeCertificate(t testing.TB, name string) (certFile, keyFile string) {
	t.Helper()
	cert, key := makeCertificate(t, name)
	return testkit.WriteFile(t, "cert.pem", string(cert)), testkit.WriteFile(t, "key.pem", string(key))
}

// insecureClient accepts any certificate.
func insecureClient(t testing.TB) *http.Client {
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func TestServer_CertificateFiles(t *testing.T) {
	certFile, keyFile := writeCertificate(t, "one.example.com")
	s := start(t, access.Config{TLS: access.TLS{CertFile: certFile, KeyFile: keyFile}}, nil)
	name := func() (string, *http.Response) {
		access.CheckFilesNow(s.control)
		client := insecureClient(t)
		response, err := client.Get(s.url)
		testkit.Must(t, err)
		_ = response.Body.Close()
		return response.TLS.PeerCertificates[0].Subject.CommonName, response
	}
	first, response := name()
	if first != "one.example.com" || response.ProtoMajor != 2 || response.TLS.Version != tls.VersionTLS13 {
		t.Errorf("got %s over %s", first, response.Proto)
	}
	if got := response.Header.Get("Strict-Transport-Security"); got != "max-age=31536000" {
		t.Errorf("HSTS is %q", got)
	}
	cert, key := makeCertificate(t, "two.example.com")
	testkit.Must(t, os.WriteFile(certFile, cert, 0o600))
	if got, _ := name(); got != "one.example.com" || !strings.Contains(s.log.String(), "certificate not reloaded") {
		t.Errorf("with a new certificate and the old key: %s", got)
	}
	testkit.Must(t, os.WriteFile(keyFile, key, 0o600))
	if got, _ := name(); got != "two.example.com" {
		t.Errorf("after both changed: %s", got)
	}
	_, err := tls.Dial("tcp", strings.TrimPrefix(s.url, "https://"), &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11})
	if err == nil {
		t.Error("TLS 1.1 is accepted")
	}
}

func TestNew_InvalidTLS(t *testing.T) {
	certFile, keyFile := writeCertificate(t, "localhost")
	folder := t.TempDir()
	tests := map[string]access.TLS{
		"needs both a certificate file":   {CertFile: certFile},
		"either a certificate file":       {CertFile: certFile, KeyFile: keyFile, Domains: []string{"app.example.com"}},
		"the certificate":                 {CertFile: keyFile, KeyFile: certFile},
		"no such file":                    {CertFile: filepath.Join(folder, "none"), KeyFile: keyFile},
		"needs a folder for certificates": {Domains: []string{"app.example.com"}},
		`"*.example.com" is not a`:        {Domains: []string{"*.example.com"}, Cache: folder},
		`"127.0.0.1" is not a`:            {Domains: []string{"127.0.0.1"}, Cache: folder},
		`"localhost" is not a`:            {Domains: []string{"localhost"}, Cache: folder},
	}
	for want, cfg := range tests {
		if _, err := access.New(access.Config{TLS: cfg}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
