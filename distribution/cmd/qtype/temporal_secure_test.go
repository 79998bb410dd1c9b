package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/model/modeltest"
)

// authority signs the certificates of a test.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	a.cert, a.key = a.sign(&x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, Subject: pkix.Name{CommonName: "ca"}})
	return a
}

// sign returns a certificate and its key.
func (a *authority) sign(template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(time.Now().UnixNano()), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, by := template, key
	if a.cert != nil {
		parent, by = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

// write writes a certificate and its key as PEM files.
func (c *cluster) writePair(name string, cert *x509.Certificate, key *ecdsa.PrivateKey) {
	c.t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		c.t.Fatal(err)
	}
	c.write(name+".pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})))
	c.write(name+"-key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
}

// secureProxy accepts connections with TLS and a certificate of a client, as Temporal's servers in
// production do, and passes them on.
func secureProxy(t *testing.T, a *authority, to string) (address string) {
	t.Helper()
	cert, key := a.sign(&x509.Certificate{DNSNames: []string{"temporal.test"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	clients := x509.NewCertPool()
	clients.AddCert(a.cert)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: key}},
		ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: clients, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = in.Close() }()
				out, err := net.Dial("tcp", to)
				if err != nil {
					return
				}
				defer func() { _ = out.Close() }()
				go func() { _, _ = io.Copy(out, in) }()
				_, _ = io.Copy(in, out)
			}()
		}
	}()
	return listener.Addr().String()
}

// TestTemporal_Secure: with TLS and a key, the run is that of a local run, and neither the histories
// of Temporal nor the blobs have a text of a row. Without the certificate, or with another key, nothing works.
func TestTemporal_Secure(t *testing.T) {
	t.Parallel()
	model := httptest.NewServer(modeltest.OpenAI(func(messages []modeltest.Message) (string, int) {
		return "answer to " + messages[len(messages)-1].Content, 0
	}))
	t.Cleanup(model.Close)
	var input, want strings.Builder
	input.WriteString("session,text\n")
	for i := range 40 {
		fmt.Fprintf(&input, "s%d,confidential %d %s\n", i%4, i, strings.Repeat("x", 300)) // too much for a history
		fmt.Fprintf(&want, `{"row":%d,"session":"s%d","answer":"answer to confidential %d %s","error":null}`+"\n", i+1, i%4, i, strings.Repeat("x", 300))
	}
	c := newCluster(t, fmt.Sprintf(talks, model.URL), input.String())
	a := newAuthority(t)
	c.writePair("ca", a.cert, a.key)
	cert, key := a.sign(&x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	c.writePair("client", cert, key)
	c.write("key", base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))+"\n")
	c.write("other-key", base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{8}, 32))+"\n")
	place := []string{"--temporal-address", secureProxy(t, a, c.server.Address()), "--temporal-tls-ca", "ca.pem", "--temporal-tls-server-name", "temporal.test"}
	if status, _, errs := c.qtype(append([]string{"runs", "list"}, place...)...); status != 1 || !strings.Contains(errs, "no answer from Temporal") {
		t.Errorf("without a certificate: %d\n%s", status, errs)
	}
	place = append(place, "--temporal-tls-cert", "client.pem", "--temporal-tls-key", "client-key.pem")
	keyed := append(place[:len(place):len(place)], "--temporal-key-file", "key")
	c.worker(keyed...)
	run := append([]string{"run", "app.qtype.yaml", "-I", "in.csv", "-o", "out.jsonl", "--engine", "temporal", "--chunk", "4"}, keyed...)
	if status, _, errs := c.qtype(run...); status != 0 {
		t.Fatalf("%d\n%s", status, errs)
	}
	if diff := cmp.Diff(want.String(), c.read("out.jsonl")); diff != "" {
		t.Error(diff)
	}
	_, list, _ := c.qtype(append([]string{"runs", "list", "--format", "json"}, keyed...)...)
	if !strings.Contains(list, `"flow":"main"`) {
		t.Errorf("list: %s", list)
	}
	id, _, _ := strings.Cut(strings.TrimPrefix(list, `{"id":"`), `"`)
	if _, list, _ = c.qtype(append([]string{"runs", "list", "--format", "json"}, append(place, "--temporal-key-file", "other-key")...)...); strings.Contains(list, `"flow":"main"`) || !strings.Contains(list, id) {
		t.Errorf("list with another key: %s", list)
	}
	history, err := exec.Command(os.Getenv(servertest.TemporalVariable), "workflow", "show", "--address", c.server.Address(), "-w", id, "--output", "json").Output()
	if err != nil || len(history) == 0 || bytes.Contains(history, []byte("confidential")) || bytes.Contains(history, []byte(base64.StdEncoding.EncodeToString([]byte(`{"Run"`))[:8])) {
		t.Errorf("the history is readable, %v:\n%.2000s", err, history)
	}
	c.checkBlobs(run)
}

// checkBlobs interrupts a run and looks into its blobs.
func (c *cluster) checkBlobs(run []string) {
	c.t.Helper()
	c.write("in.csv", strings.Replace(c.read("in.csv"), "s0,confidential 0", "s0,confidential new", 1))
	cmd := c.command(c.t.Context(), append(run, "--temporal-key-file", "other-key", "-o", "none.jsonl")...) // no worker has this key
	errs, err := cmd.StderrPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	text := make([]byte, 1<<12)
	for read := ""; !strings.Contains(read, "no worker has this document"); {
		n, err := errs.Read(text)
		if read += string(text[:n]); err != nil {
			c.t.Fatalf("%s: %v", read, err)
		}
	}
	blobs := 0
	err = filepath.WalkDir(filepath.Join(c.dir, ".qtype", "blobs"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if blobs++; bytes.Contains(data, []byte("confidential")) {
			c.t.Errorf("%s is readable", path)
		}
		return err
	})
	if err != nil || blobs == 0 {
		c.t.Errorf("%d blobs, %v", blobs, err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// TestTemporal_RestartWithKey: --restart replaces a run that has another key, or none.
func TestTemporal_RestartWithKey(t *testing.T) {
	t.Parallel()
	c := newCluster(t, computes, numbers(6))
	c.worker()
	run := []string{"run", "app.qtype.yaml", "-I", "in.csv", "-o", "out.csv", "--engine", "temporal"}
	if status, _, errs := c.qtype(run...); status != 0 {
		t.Fatalf("%d: %s", status, errs)
	}
	want := c.read("out.csv")
	c.write("temporal.key", base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32))))
	key := []string{"--temporal-key-file", "temporal.key"}
	c.worker(key...)
	if status, _, errs := c.qtype(append(append(run, key...), "--restart")...); status != 0 {
		t.Fatalf("%d: %s", status, errs)
	}
	if got := c.read("out.csv"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
