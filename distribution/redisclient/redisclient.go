// Package redisclient makes clients of Redis servers. It is the only package that names the driver's own types of
// clients and options: the compiler repeats their hundreds of methods in each package that does, 9 MB of compiled code.
// The interfaces of the driver cost nothing.
package redisclient

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/url"
	"strings"
	"time"

	driver "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Client is a client of one server or one cluster. It is safe for concurrent use.
type Client interface {
	driver.Cmdable
	Do(ctx context.Context, args ...any) *driver.Cmd // runs any command
	Close() error                                    // closes all connections
}

// Config describes how a server is reached.
type Config struct {
	Address     *url.URL       // redis://user:password@host:6379/0, or rediss:// for TLS, with parameters of the driver
	Cluster     bool           // the address is that of a node of a cluster
	Timeout     time.Duration  // of one command, without connecting
	DialTimeout time.Duration  // of connecting, if the address sets none; 0 for that of the driver
	PoolSize    int            // the most connections to a node, if the address sets none; 0 for that of the driver
	MaxRetries  int            // of one command; 0 for that of the address or the driver, -1 for none
	Protocol    int            // the version of the protocol; 0 for that of the address or the driver
	RootCAs     *x509.CertPool // who may sign the certificate of the server; nil for those of the system
	SkipVerify  bool           // accept any certificate
}

// Server is a server that Parse has read the address of.
type Server struct {
	Address  string        // host and port; empty for a cluster
	Password string        // not to be shown; empty for a cluster
	Connect  func() Client // returns a new client, which connects when it is first used
}

// Parse returns the server of a configuration. Waits end with the caller's context, and the driver sends no
// commands but those of the caller.
func Parse(c Config) (*Server, error) {
	if c.Cluster {
		return parseCluster(c)
	}
	o, err := driver.ParseURL(c.Address.String())
	if err != nil {
		return nil, withoutPrefix(err)
	}
	o.ContextTimeoutEnabled, o.DisableIdentity, o.MaxRetries, o.DialerRetries = true, true, cmp.Or(c.MaxRetries, o.MaxRetries), 1
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = c.Timeout, c.Timeout, c.Timeout
	o.DialTimeout, o.PoolSize = cmp.Or(o.DialTimeout, c.DialTimeout), cmp.Or(o.PoolSize, c.PoolSize)
	o.Protocol = cmp.Or(c.Protocol, o.Protocol)
	c.setTLS(o.TLSConfig)
	return &Server{Address: o.Addr, Password: o.Password, Connect: func() Client { return driver.NewClient(o) }}, nil
}

// parseCluster does the same as Parse for a cluster.
func parseCluster(c Config) (*Server, error) {
	o, err := driver.ParseClusterURL(c.Address.String())
	if err != nil {
		return nil, withoutPrefix(err)
	}
	o.ContextTimeoutEnabled, o.DisableIdentity, o.MaxRetries, o.DialerRetries = true, true, cmp.Or(c.MaxRetries, o.MaxRetries), 1
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = c.Timeout, c.Timeout, c.Timeout
	o.DialTimeout, o.PoolSize = cmp.Or(o.DialTimeout, c.DialTimeout), cmp.Or(o.PoolSize, c.PoolSize)
	o.Protocol = cmp.Or(c.Protocol, o.Protocol)
	c.setTLS(o.TLSConfig)
	return &Server{Connect: func() Client { return driver.NewClusterClient(o) }}, nil
}

// setTLS sets how the certificate of the server is checked; settings are nil without TLS.
func (c Config) setTLS(settings *tls.Config) {
	if settings == nil {
		return
	}
	settings.MinVersion = max(settings.MinVersion, tls.VersionTLS12)
	settings.RootCAs = c.RootCAs
	settings.InsecureSkipVerify = settings.InsecureSkipVerify || c.SkipVerify
}

// withoutPrefix returns an error of the driver without the driver's name.
func withoutPrefix(err error) error { return errors.New(strings.TrimPrefix(err.Error(), "redis: ")) }

// New returns a client of the server at a host and port, without TLS and password: for tests.
func New(address string) Client {
	return driver.NewClient(&driver.Options{Addr: address, Protocol: 2, DisableIdentity: true})
}
