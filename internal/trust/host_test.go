package trust_test

import (
	"net/netip"
	"testing"

	"github.com/qtype-dev/qtype/internal/trust"
)

func TestIsPrivateHost(t *testing.T) {
	for host, want := range map[string]bool{
		// 127.0.0.1 and 169.254.169.254 in the forms of inet_aton
		"127.0.0.1": true, "127.1": true, "127.0.1": true, "2130706433": true, "0x7f000001": true, "0x7f.0.0.1": true, "0X7F.1": true,
		"0177.0.0.1": true, "0177.1": true, "017700000001": true, "00000177.0.0.1": true, "127.0.0.1.": true, "0": true, "0x": true, "0.0": true,
		"169.254.169.254": true, "2852039166": true, "0xa9fea9fe": true, "0251.0376.0251.0376": true, "0xa9.0xfe.0xa9.0xfe": true, "169.16689662": true,
		"10.0.1": true, "192.168.257": true, "１２７.0.0.1": true, "①②⑦.0.0.1": true, "127。0。0。1": true,
		// numbers that are not addresses
		"256.1.1.1": true, "1.2.3.4.5": true, "4294967296": true, "1.1.1.256": true, "08.1.1.1": true, "a.1": true, "example.09": true, "99999999999999999999": true,
		// IPv6 with an IPv4 address in it
		"::1": true, "[::1]": true, "::ffff:127.0.0.1": true, "::ffff:a9fe:a9fe": true, "::127.0.0.1": true, "64:ff9b::a9fe:a9fe": true, "64:ff9b:1::a9fe:a9fe": true,
		"2002:7f00:1::": true, "2001:0:4136:e378:8000:63bf:80ff:fffe": true, "::ffff:0:127.0.0.1": true, "2606:4700::5efe:10.0.0.1": true, "2606:4700::200:5efe:10.0.0.1": true,
		"fe80::1%25eth0": true, "fd00:ec2::254": true, "2001:db8::1": true,
		// names
		"localhost": true, "LOCALHOST": true, "localhost.": true, "a.localhost": true, "metadata.google.internal": true, "METADATA.google.internal.": true, "metadata": true,
		"metadata.goog": true, "instance-data": true, "instance-data.ec2.internal": true, "metadata.tencentyun.com": true, "kubernetes.default.svc": true, "printer.local": true,
		"router.home.arpa": true, "host.docker.internal": true,
		// public
		"8.8.8.8": false, "8.8.2056": false, "134744072": false, "0x08080808": false, "1.1.1.1": false, "2606:4700::1111": false, "::ffff:8.8.8.8": false, "64:ff9b::808:808": false,
		"2002:808:808::": false, "example.com": false, "metadata.example.com": false, "internal.example.com": false, "notlocalhost": false, "0x7f.example.com": false,
		"1.example.com": false, "bücher.example": false, "": false,
	} {
		if host == "fe80::1%25eth0" {
			host = "fe80::1%eth0"
		}
		if got := trust.IsPrivateHost(host); got != want {
			t.Errorf("%s: %v", host, got)
		}
	}
}

func TestIsPrivate_Blocks(t *testing.T) {
	for _, text := range []string{"192.88.99.1", "100::1", "2001::1", "2001:2::1", "2001:1ff:ffff::1", "3fff::1", "5f00::1", "fec0::1"} {
		if !trust.IsPrivate(netip.MustParseAddr(text)) {
			t.Errorf("%s is public", text)
		}
	}
	for _, text := range []string{"2001:200::1", "2001:4860:4860::8888", "2003::1"} {
		if trust.IsPrivate(netip.MustParseAddr(text)) {
			t.Errorf("%s is private", text)
		}
	}
}

func FuzzIsPrivateHost(f *testing.F) {
	for _, seed := range []string{"127.1", "0x7f000001", "::1", "a.b", "１"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, host string) {
		private := trust.IsPrivateHost(host)
		if ip, err := netip.ParseAddr(host); err == nil && trust.IsPrivate(ip) && !private {
			t.Errorf("%q is public", host)
		}
	})
}
