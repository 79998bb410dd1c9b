package wire

import (
	"regexp"
	"sync"
)

// versionPattern matches the versions of protocols in URLs: v1, v1beta, v1alpha1.
var versionPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]*)?$`) })

// IsVersion reports whether a segment of a path is the version of a protocol, so that a
// base URL may contain it or not.
func IsVersion(segment string) bool { return versionPattern().MatchString(segment) }
