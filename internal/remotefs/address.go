package remotefs

import (
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// split separates the scheme of an address, in lower case, from what follows ://. A
// local path has no scheme, even if it begins with a drive letter.
func split(address string) (scheme, rest string) {
	scheme, rest, found := strings.Cut(address, "://")
	if !found || len(scheme) < 2 || strings.ContainsFunc(scheme, notInScheme) {
		return "", address
	}
	return strings.ToLower(scheme), rest
}

func notInScheme(r rune) bool {
	letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
	return !letter && r != '+' && r != '-' && r != '.'
}

// Remote reports whether an address is remote, and its scheme. Unsupported schemes
// are remote too.
func Remote(address string) (scheme string, ok bool) {
	scheme, _ = split(address)
	switch scheme {
	case "", "file", "local":
		return "", false
	}
	return scheme, true
}

// Path returns the local path of an address that is not remote.
func Path(address string) string {
	_, rest := split(address)
	return rest
}

// Join resolves a reference in the document at base. A reference with a scheme or an
// absolute local path is returned unchanged; others are relative to the directory
// of base. The query of an http URL is dropped; in a bucket a question mark is an
// ordinary character.
func Join(base, ref string) string {
	scheme, rest := split(base)
	switch refScheme, _ := split(ref); {
	case refScheme != "":
		return ref
	case scheme == "http" || scheme == "https":
		if !strings.HasPrefix(ref, "/") {
			ref = "./" + ref // otherwise text before a colon would be a scheme
		}
		b, err := url.Parse(base)
		r, err2 := url.Parse(ref)
		if err != nil || err2 != nil {
			return Base(base) + ref
		}
		return b.ResolveReference(r).String()
	case scheme != "" && scheme != "file" && scheme != "local":
		bucket, key, _ := strings.Cut(rest, "/")
		if strings.HasPrefix(ref, "/") {
			key = ""
		}
		return scheme + "://" + bucket + path.Join("/", path.Dir("/"+key), ref)
	case filepath.IsAbs(ref):
		return filepath.Clean(ref)
	}
	return filepath.Join(filepath.Dir(rest), ref)
}

// Base returns the directory of a remote address, with a trailing slash and without
// a query, which may hold credentials.
func Base(address string) string {
	scheme, rest := split(address)
	if scheme == "http" || scheme == "https" {
		if u, err := url.Parse(address); err == nil {
			return u.ResolveReference(&url.URL{Path: "./"}).String()
		}
	}
	at := strings.LastIndexByte(rest, '/')
	return scheme + "://" + rest[:at+1]
}

// IsUnder reports whether a remote address is below a result of Base: same scheme,
// server and user, and a path that does not leave it.
func IsUnder(base, address string) bool {
	b, err := url.Parse(base)
	a, err2 := url.Parse(address)
	if err != nil || err2 != nil {
		// Not a URL, as the key of an object may be.
		return strings.HasPrefix(address, base) && !slices.Contains(strings.Split(address, "/"), "..")
	}
	if !strings.EqualFold(a.Scheme, b.Scheme) || !strings.EqualFold(a.Host, b.Host) {
		return false
	}
	if a.User != nil && a.User.String() != b.User.String() {
		return false
	}
	// The decoded path, because servers decode %2e%2e before resolving it.
	return strings.HasPrefix(a.Path, b.Path) && !slices.Contains(strings.FieldsFunc(a.Path, isSlash), "..")
}

func isSlash(r rune) bool { return r == '/' || r == '\\' }

// Redacted returns an address for messages: without user, password, query and
// fragment. A local path is unchanged.
func Redacted(address string) string {
	scheme, rest := split(address)
	if _, remote := Remote(address); !remote {
		return address
	}
	rest, _, _ = strings.Cut(rest, "?")
	rest, _, _ = strings.Cut(rest, "#")
	host, tail, _ := strings.Cut(rest, "/")
	if at := strings.LastIndexByte(host, '@'); at >= 0 && (scheme == "http" || scheme == "https" || strings.Contains(host[:at], ":")) {
		host = host[at+1:]
	}
	if tail == "" && !strings.HasSuffix(rest, "/") {
		return scheme + "://" + host
	}
	return scheme + "://" + host + "/" + tail
}

// parseBucket parses the address of an object. Azure's may name the account:
// abfs://container@account.dfs.core.windows.net/key.
func parseBucket(address string) (BucketObject, error) {
	scheme, rest := split(address)
	object := BucketObject{Scheme: scheme, Service: serviceOf(scheme)}
	if object.Service == "" {
		return object, &SchemeError{Scheme: scheme, Supported: supported()}
	}
	object.Bucket, object.Key, _ = strings.Cut(rest, "/")
	if object.Service == "azure" {
		if container, host, found := strings.Cut(object.Bucket, "@"); found {
			object.Bucket = container
			object.Account, object.Domain, _ = strings.Cut(host, ".")
			object.Domain = strings.Replace(object.Domain, "dfs.", "blob.", 1)
		}
	}
	if object.Bucket == "" || object.Key == "" {
		return object, &AccessError{Address: Redacted(address), Why: "missing object key: " + scheme + "://BUCKET/PATH expected"}
	}
	return object, nil
}
