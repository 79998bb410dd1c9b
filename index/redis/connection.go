package redis

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/url"
	"strings"
	"time"

	driver "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Connection describes how a server is reached.
type Connection struct {
	Address    *url.URL       // redis://user:password@host:6379/0, or rediss:// for TLS
	Timeout    time.Duration  // of one command
	MaxRetries *int           // of a command; nil for the default of the driver
	RootCAs    *x509.CertPool // who may sign the certificate of the server; nil for those of the system
	SkipVerify bool           // accept any certificate
}

// options returns the settings of the driver.
func options(c Connection) (*driver.Options, error) {
	o, err := driver.ParseURL(c.Address.String())
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "redis: "))
	}
	// Answers are read in the form of the second version of the protocol, which all servers have.
	o.Protocol, o.ContextTimeoutEnabled, o.DisableIdentity, o.DialerRetries = 2, true, true, 1
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = c.Timeout, c.Timeout, c.Timeout
	if c.MaxRetries != nil {
		o.MaxRetries = *c.MaxRetries
		if o.MaxRetries == 0 {
			o.MaxRetries = -1 // 0 is the driver's default
		}
	}
	if o.TLSConfig != nil {
		o.TLSConfig.MinVersion = max(o.TLSConfig.MinVersion, tls.VersionTLS12)
		o.TLSConfig.RootCAs = c.RootCAs
		if c.SkipVerify {
			o.TLSConfig.InsecureSkipVerify = true
		}
	}
	return o, nil
}
