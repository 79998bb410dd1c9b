package trust

import (
	"net/netip"
	"sync"
)

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
