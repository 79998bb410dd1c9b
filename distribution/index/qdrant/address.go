package qdrant

import (
	"cmp"
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/spec"
)

// defaultPort is the port of Qdrant's REST API, also of addresses without a port, as in
// the official client.
const defaultPort = 6333

// Address returns the address of a server. Without url, https is used with a key, as in
// the official client.
func Address(a *spec.QdrantArguments, hasKey bool) (string, error) {
	scheme := "http"
	if a.HTTPS != nil && *a.HTTPS || a.HTTPS == nil && hasKey {
		scheme = "https"
	}
	u := &url.URL{Scheme: scheme, Host: net.JoinHostPort(cmp.Or(a.Host, "localhost"), strconv.Itoa(cmp.Or(a.Port, defaultPort)))}
	if a.URL != "" {
		var err error
		if u, err = url.Parse(a.URL); err != nil || u.Host == "" {
			return "", errors.New("args: url must begin with http:// or https:// and a host")
		}
		if u.Port() == "" {
			u.Host = net.JoinHostPort(u.Hostname(), strconv.Itoa(cmp.Or(a.Port, defaultPort)))
		}
	}
	if a.Prefix != "" {
		u.Path = strings.TrimRight(u.Path, "/") + "/" + strings.Trim(a.Prefix, "/")
	}
	return u.String(), nil
}
