package access

import (
	"fmt"
	"net/netip"
	"strings"
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
