package httpx

import (
	"runtime/debug"
	"strings"
	"sync"
)

// UserAgent is the User-Agent of requests: qtype/ and the version that the build
// recorded, qtype/dev if it recorded none.
var UserAgent = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return userAgent("")
	}
	const module = "github.com/qtype-dev/qtype"
	if info.Main.Path == module {
		return userAgent(info.Main.Version)
	}
	for _, dep := range info.Deps { // a program that uses the library
		if dep.Path == module {
			return userAgent(dep.Version)
		}
	}
	return userAgent("")
})

// userAgent returns the product token of a version (RFC 9110, section 10.1.5).
func userAgent(version string) string {
	version = strings.TrimPrefix(version, "v")
	if version == "" || version == "(devel)" {
		return "qtype/dev"
	}
	return "qtype/" + strings.Map(func(r rune) rune {
		if r > ' ' && r < 0x7f && !strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r) {
			return r
		}
		return '-'
	}, version)
}
