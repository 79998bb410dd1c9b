//go:build !js

package trust

import "golang.org/x/net/idna"

// asciiName returns the form of a name that is resolved: xn--bcher-kva for bücher. A name that has
// none is returned unchanged.
func asciiName(host string) string {
	if ascii, err := idna.Lookup.ToASCII(host); err == nil {
		return ascii
	}
	return host
}
