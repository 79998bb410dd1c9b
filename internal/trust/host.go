package trust

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
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

// The functions of this file replace package net, which would make the checker in the
// browser larger.

// splitPort returns a host without its port, and whether it has one, as net.SplitHostPort.
func splitPort(host string) (name string, ok bool) {
	colon := strings.LastIndexByte(host, ':')
	if colon < 0 {
		return "", false
	}
	name = host[:colon]
	if inner, bracketed := strings.CutPrefix(name, "["); bracketed {
		if name, bracketed = strings.CutSuffix(inner, "]"); !bracketed {
			return "", false
		}
	} else if strings.Contains(name, ":") {
		return "", false
	}
	return name, !strings.ContainsAny(name, "[]") && !strings.ContainsAny(host[colon:], "[]")
}

// joinPort adds a port to a host, as net.JoinHostPort.
func joinPort(host, port string) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + port
}

// IsPrivate reports whether an address is not on the public Internet.
func IsPrivate(ip netip.Addr) bool {
	ip = embedded(ip.Unmap().WithZone(""))
	if !ip.IsGlobalUnicast() || ip.IsPrivate() || ip.IsLoopback() || ip.IsLinkLocalUnicast() {
		return true
	}
	for _, p := range reservedPrefixes() {
		if p.Contains(ip) {
			return true
		}
	}
	return false
}

// reservedPrefixes returns the blocks of the IANA special-purpose registries (RFC 6890)
// that netip has no method for.
var reservedPrefixes = sync.OnceValue(func() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("0.0.0.0/8"),       // this network
		netip.MustParsePrefix("100.64.0.0/10"),   // shared address space, metadata services of some clouds
		netip.MustParsePrefix("192.0.0.0/24"),    // protocol assignments
		netip.MustParsePrefix("192.0.2.0/24"),    // documentation
		netip.MustParsePrefix("198.18.0.0/15"),   // benchmarks
		netip.MustParsePrefix("198.51.100.0/24"), // documentation
		netip.MustParsePrefix("203.0.113.0/24"),  // documentation
		netip.MustParsePrefix("192.88.99.0/24"),  // relays of 6to4, deprecated
		netip.MustParsePrefix("240.0.0.0/4"),     // reserved
		netip.MustParsePrefix("64:ff9b:1::/48"),  // NAT64 of a local network (RFC 8215)
		netip.MustParsePrefix("100::/64"),        // discarded
		netip.MustParsePrefix("2001::/23"),       // protocol assignments: Teredo (RFC 4380), benchmarks, identifiers
		netip.MustParsePrefix("2001:db8::/32"),   // documentation
		netip.MustParsePrefix("3fff::/20"),       // documentation
		netip.MustParsePrefix("5f00::/16"),       // segment routing
		netip.MustParsePrefix("fec0::/10"),       // site-local addresses, deprecated
	}
})

// embedded returns the IPv4 address inside of an IPv6 address that a gateway or the
// operating system would extract: NAT64 (RFC 6052), 6to4 (RFC 3056), ISATAP (RFC 5214),
// IPv4-translated (RFC 2765) and IPv4-compatible addresses. It returns other addresses unchanged.
func embedded(ip netip.Addr) netip.Addr {
	if !ip.Is6() {
		return ip
	}
	b := ip.As16()
	switch {
	case [12]byte(b[:12]) == [12]byte{0, 0x64, 0xff, 0x9b}:
		return netip.AddrFrom4([4]byte(b[12:]))
	case b[0] == 0x20 && b[1] == 0x02:
		return netip.AddrFrom4([4]byte(b[2:6]))
	case [12]byte(b[:12]) == [12]byte{8: 0xff, 9: 0xff}, [3]byte(b[9:12]) == [3]byte{0, 0x5e, 0xfe} && b[8]&^2 == 0:
		return netip.AddrFrom4([4]byte(b[12:]))
	case [12]byte(b[:12]) == [12]byte{}:
		return netip.AddrFrom4([4]byte(b[12:])) // ::1 and :: become 0.0.0.x, which is rejected as well
	}
	return ip
}
