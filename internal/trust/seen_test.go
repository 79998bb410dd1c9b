package trust_test

import (
	"net/netip"
	"testing"

	"github.com/qtype-dev/qtype/internal/trust"
)

// TestReading follows redirects of a request for a document. Each hop is a host and the address
// of the connection; without one, a connection is used again.
func TestReading(t *testing.T) {
	for name, c := range map[string]struct {
		hops    [][2]string
		refused bool
	}{
		"public":                   {hops: [][2]string{{"a.example.com:80", "93.184.216.34:80"}, {"b.example.com:80", "93.184.216.35:80"}}},
		"private":                  {hops: [][2]string{{"a.example.com:80", "10.0.0.1:80"}, {"b.example.com:80", "127.0.0.1:80"}}},
		"private to public":        {hops: [][2]string{{"a.example.com:80", "10.0.0.1:80"}, {"b.example.com:80", "93.184.216.34:80"}}},
		"public to private":        {hops: [][2]string{{"a.example.com:80", "93.184.216.34:80"}, {"b.example.com:80", "169.254.169.254:80"}}, refused: true},
		"to a private literal":     {hops: [][2]string{{"a.example.com:80", "93.184.216.34:80"}, {"2130706433:80", ""}}, refused: true},
		"to a connection in use":   {hops: [][2]string{{"a.example.com:80", "93.184.216.34:80"}, {"intranet.example.com:80", ""}}, refused: true},
		"from a connection in use": {hops: [][2]string{{"public.example.com:80", ""}, {"b.example.com:80", "127.0.0.1:80"}}, refused: true},
	} {
		seen := &trust.Seen{}
		seen.Add("intranet.example.com:80", netip.MustParseAddr("10.0.0.7"))
		seen.Add("public.example.com:80", netip.MustParseAddr("93.184.216.34"))
		r := trust.ReadingOf(trust.WithReading(t.Context(), seen))
		var err error
		for _, hop := range c.hops {
			if err = r.Request(hop[0]); err == nil && hop[1] != "" {
				if err = r.Dial(hop[0], hop[1]); err == nil {
					r.Connected(hop[0], hop[1])
				}
			}
		}
		if (err != nil) != c.refused {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
