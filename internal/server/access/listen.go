package access

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"
)

// CheckListen returns an error if a server must not listen on host: an address that is
// not loopback needs authentication, unless the operator accepts that anyone who reaches
// the address may call it. host is an address or a name without a port; the empty host
// is all addresses.
func CheckListen(host string, authenticated, insecure bool) error {
	if authenticated || insecure || isLoopback(host) {
		return nil
	}
	if host == "" {
		host = "all addresses"
	}
	return fmt.Errorf("listening on %s needs authentication, because others can reach it: "+
		"set API keys or an OpenID issuer, listen on 127.0.0.1, or accept requests of anyone with --insecure-no-auth", host)
}

// isLoopback reports whether a host is reachable only from this computer. A name other
// than localhost is not: what it resolves to may change.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	return err == nil && ip.Unmap().IsLoopback()
}

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

// certificates provides the certificate of the server: from files, or by ACME. It is
// safe for concurrent use.
type certificates struct {
	files   *certificateFiles
	manager *autocert.Manager
}

// newCertificates reads the certificate, or prepares ACME. It returns nil without TLS.
func newCertificates(cfg TLS, client *http.Client, logger *slog.Logger) (*certificates, error) {
	hasFiles := cfg.CertFile != "" || cfg.KeyFile != ""
	switch {
	case hasFiles && len(cfg.Domains) > 0:
		return nil, errors.New("choose either a certificate file or ACME domains")
	case hasFiles && (cfg.CertFile == "" || cfg.KeyFile == ""):
		return nil, errors.New("TLS needs both a certificate file and a key file")
	case hasFiles:
		files, err := newCertificateFiles(cfg, logger)
		return &certificates{files: files}, err
	case len(cfg.Domains) > 0:
		return newManager(cfg, client)
	}
	return nil, nil
}

// newManager returns certificates by ACME.
func newManager(cfg TLS, client *http.Client) (*certificates, error) {
	if cfg.Cache == "" {
		return nil, errors.New("ACME needs a folder for certificates: without one each start would request new ones")
	}
	for _, domain := range cfg.Domains {
		if net.ParseIP(domain) != nil || !strings.Contains(domain, ".") || strings.ContainsAny(domain, "*:/ ") {
			return nil, fmt.Errorf("the ACME domain %q is not a complete name such as app.example.com", domain)
		}
	}
	if err := os.MkdirAll(cfg.Cache, 0o700); err != nil {
		return nil, fmt.Errorf("the folder of certificates: %w", err)
	}
	manager := &autocert.Manager{Prompt: autocert.AcceptTOS, Email: cfg.Email, Cache: autocert.DirCache(cfg.Cache),
		HostPolicy: autocert.HostWhitelist(cfg.Domains...), Client: &acme.Client{HTTPClient: client, DirectoryURL: cfg.Directory}}
	if cfg.Directory == "" {
		manager.Client.DirectoryURL = autocert.DefaultACMEDirectory
	}
	return &certificates{manager: manager}, nil
}

// config returns the configuration of TLS 1.2 and 1.3 with HTTP/2, nil without TLS.
func (c *certificates) config() *tls.Config {
	if c == nil {
		return nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	if c.manager != nil {
		cfg.NextProtos = append(cfg.NextProtos, acme.ALPNProto)
		cfg.GetCertificate = c.manager.GetCertificate
		return cfg
	}
	cfg.GetCertificate = c.files.get
	return cfg
}

// certificateFiles is a certificate in files that may change.
type certificateFiles struct {
	cert, key watchedFile
	current   atomic.Pointer[tls.Certificate]
	logger    *slog.Logger
}

func newCertificateFiles(cfg TLS, logger *slog.Logger) (*certificateFiles, error) {
	f := &certificateFiles{cert: watchedFile{path: cfg.CertFile}, key: watchedFile{path: cfg.KeyFile}, logger: logger}
	f.cert.changed()
	f.key.changed()
	if info, err := os.Stat(cfg.KeyFile); err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&openToOther != 0 {
		logger.Warn("other users can read or change the key of the certificate", "file", cfg.KeyFile)
	}
	return f, f.load()
}

func (f *certificateFiles) load() error {
	pair, err := tls.LoadX509KeyPair(f.cert.path, f.key.path)
	if err != nil {
		return fmt.Errorf("the certificate %s: %w", f.cert.path, err)
	}
	f.current.Store(&pair)
	return nil
}

// get returns the certificate, after reading it again if a file changed. During a change
// of both files, or if they are invalid, the previous certificate is used.
func (f *certificateFiles) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	certChanged, keyChanged := f.cert.changed(), f.key.changed()
	if certChanged || keyChanged {
		if err := f.load(); err != nil {
			f.logger.Error("certificate not reloaded, the previous one is used", "error", err.Error())
		} else {
			f.logger.Info("certificate reloaded", "file", f.cert.path)
		}
	}
	return f.current.Load(), nil
}

const (
	maxH2Streams = 250              // of one HTTP/2 connection
	pingAfter    = 30 * time.Second // without a frame of an HTTP/2 connection
	pingTimeout  = 15 * time.Second
)

// Server returns a server for Wrap(h): with time limits against slow clients and, if
// configured, with TLS and HTTP/2. Responses of any duration are possible: the time
// limits are those of each write.
func (c *Control) Server(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           c.Wrap(h),
		ReadHeaderTimeout: max(c.limits.HeaderTime, 0),
		IdleTimeout:       max(c.limits.IdleTime, 0),
		MaxHeaderBytes:    max(c.limits.HeaderBytes, 0),
		TLSConfig:         c.certs.config(),
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxH2Streams, SendPingTimeout: pingAfter,
			PingTimeout: pingTimeout, WriteByteTimeout: max(c.limits.WriteTime, 0)},
		ErrorLog: log.New(serverLog{c.logger}, "", 0),
	}
}

// Serve accepts the connections of a listener for a server of Control.Server, with the
// limits of connections, until the server is shut down.
func (c *Control) Serve(srv *http.Server, l net.Listener) error {
	l = c.limitConnections(l)
	if srv.TLSConfig == nil {
		return srv.Serve(l)
	}
	return srv.ServeTLS(l, "", "")
}

// serverLog writes the messages of net/http to a logger. Failed handshakes are for
// debugging: any client can cause them.
type serverLog struct{ logger *slog.Logger }

// Write logs a message.
func (s serverLog) Write(line []byte) (int, error) {
	text := string(bytes.TrimSpace(line))
	if bytes.Contains(line, []byte("TLS handshake error")) {
		s.logger.Debug(text)
	} else {
		s.logger.Error(text)
	}
	return len(line), nil
}
