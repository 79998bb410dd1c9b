package trust

import (
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// Below returns the path or address of a file that is named by a value: a relative path is
// below base, a folder or an address. The result may still be outside of base; see IsBelow.
func Below(base, name string) string {
	switch {
	case IsAddress(name), filepath.IsAbs(localPath(name)):
		return name
	case !IsAddress(base):
		return filepath.Join(localPath(base), localPath(name))
	case !isWeb(base):
		return strings.TrimSuffix(base, "/") + "/" + name
	}
	u, err := url.Parse(base)
	if err != nil {
		return name // IsBelow refuses it
	}
	u.Path, u.RawPath = strings.TrimSuffix(u.Path, "/")+"/"+name, ""
	return u.String()
}

// IsBelow reports whether a path or an address is below base, a folder or an address.
// Symbolic links are resolved. An address with a segment .. is not below any other.
func IsBelow(base, name string) bool {
	switch {
	case IsAddress(base) != IsAddress(name):
		return false
	case !IsAddress(base):
		return IsWithin(localPath(base), localPath(name))
	case isWeb(base):
		return isBelowURL(base, name)
	}
	return strings.HasPrefix(name, strings.TrimSuffix(base, "/")+"/") && hasNoParent(name)
}

// isBelowURL is IsBelow of http and https addresses. The query of base does not count.
func isBelowURL(base, name string) bool {
	border, err := url.Parse(base)
	if err != nil {
		return false
	}
	u, err := url.Parse(name)
	if err != nil || !strings.EqualFold(u.Scheme, border.Scheme) || !strings.EqualFold(HostPort(u), HostPort(border)) ||
		u.User.String() != border.User.String() {
		return false
	}
	decoded, err := url.PathUnescape(u.Path) // some servers decode a path twice
	return err == nil && strings.HasPrefix(u.Path, strings.TrimSuffix(border.Path, "/")+"/") && hasNoParent(u.Path) && hasNoParent(decoded)
}

// hasNoParent reports whether no segment of a path leads to the folder above it.
func hasNoParent(path string) bool {
	return !slices.Contains(strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' }), "..")
}

// isWeb reports whether an address has the scheme http or https.
func isWeb(address string) bool {
	scheme, _ := splitScheme(address)
	return scheme == "http" || scheme == "https"
}
