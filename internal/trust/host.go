package trust

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// privateNames are names of metadata services and of networks that are not public: those of
// computers and clouds, and the domains that are reserved for local networks. A name
// includes all names below it.
var privateNames = []string{
	"localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback",
	"internal", "local", "home.arpa", "svc",
	"metadata", "metadata.goog", "metadata.tencentyun.com", "instance-data",
}

// IsPrivateHost reports whether the host of a URL is a private address, in any form that
// a proxy or a C library accepts, or a name that is not public. Other names may have a private address,
// too, which only their resolution shows.
func IsPrivateHost(host string) bool {
	host = normalHost(host)
	if ip, isNumber := parseHost(host); isNumber {
		return !ip.IsValid() || IsPrivate(ip)
	}
	return slices.ContainsFunc(privateNames, func(name string) bool { return host == name || strings.HasSuffix(host, "."+name) })
}

// normalHost returns a host as it is resolved: in lower case, in ASCII, without the dot of
// the root.
func normalHost(host string) string {
	host = asciiName(host)
	return strings.TrimSuffix(strings.ToLower(host), ".")
}

// parseHost returns the address that a host is, if it is one: besides the usual forms, those of
// inet_aton, as 127.1, 2130706433, 0x7f.0.0.1 and 0177.0.0.1. A host whose last part is a number,
// but which is no address, is invalid.
func parseHost(host string) (ip netip.Addr, isNumber bool) {
	if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return ip, true
	}
	parts := strings.Split(host, ".")
	last := len(parts) - 1
	if _, err := parseNumber(parts[last]); err != nil {
		return netip.Addr{}, strings.Trim(parts[last], "0123456789") == "" && host != ""
	}
	if len(parts) > 4 {
		return netip.Addr{}, true
	}
	var address uint64
	for i, part := range parts {
		n, err := parseNumber(part)
		limit := uint64(1) << 8
		if i == last {
			limit = 1 << (8 * (4 - last))
		}
		if err != nil || n >= limit {
			return netip.Addr{}, true
		}
		address = address*limit + n
	}
	return netip.AddrFrom4([4]byte{byte(address >> 24), byte(address >> 16), byte(address >> 8), byte(address)}), true
}

// parseNumber parses a part of an IPv4 address: 0x begins a hexadecimal number, 0 an octal one.
func parseNumber(text string) (uint64, error) {
	base := 10
	switch {
	case strings.HasPrefix(text, "0x"):
		text, base = text[2:], 16
		if text == "" {
			return 0, nil
		}
	case len(text) > 1 && text[0] == '0':
		base = 8
	}
	return strconv.ParseUint(text, base, 40)
}
