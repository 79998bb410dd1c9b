package access

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync/atomic"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"
)

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
