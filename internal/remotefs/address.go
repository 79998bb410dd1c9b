package remotefs

import (
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// split takes an address apart into its scheme, in lower case, and what follows
// ://. A local path has no scheme, also one that begins with a drive letter.
func split(address string) (scheme, rest string) {
	scheme, rest, found := strings.Cut(address, "://")
	if !found || len(scheme) < 2 || strings.ContainsFunc(scheme, notOfScheme) {
		return "", address
	}
	return strings.ToLower(scheme), rest
}

func notOfScheme(r rune) bool {
	letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
	return !letter && r != '+' && r != '-' && r != '.'
}

// Remote tells whether an address is one of another machine, and its scheme. A
// scheme that is not supported counts as remote.
func Remote(address string) (scheme string, ok bool) {
	scheme, _ = split(address)
	switch scheme {
	case "", "file", "local":
		return "", false
	}
	return scheme, true
}

// Path is the local path of an address that is not remote.
func Path(address string) string {
	_, rest := split(address)
	return rest
}

// Join answers the address of a reference that stands in the document at base:
// one with a scheme or an absolute local path stands for itself, another counts
// from the folder of base. A query of base is dropped, as browsers do; in a
// bucket a question mark is a sign like others.
func Join(base, ref string) string {
	scheme, rest := split(base)
	switch refScheme, _ := split(ref); {
	case refScheme != "":
		return ref
	case scheme == "http" || scheme == "https":
		if !strings.HasPrefix(ref, "/") {
			ref = "./" + ref // so that what stands before a colon is no scheme
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

// Base is the folder of a remote address, with a slash at its end and without
// credentials in a query.
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

// IsUnder tells whether a remote address lies under a base that Base answered:
// the same scheme, server and user, and a path that does not lead out of it.
func IsUnder(base, address string) bool {
	b, err := url.Parse(base)
	a, err2 := url.Parse(address)
	if err != nil || err2 != nil {
		// No URL, as the key of a bucket may be: then it is compared as it is written.
		return strings.HasPrefix(address, base) && !slices.Contains(strings.Split(address, "/"), "..")
	}
	if !strings.EqualFold(a.Scheme, b.Scheme) || !strings.EqualFold(a.Host, b.Host) {
		return false
	}
	if a.User != nil && a.User.String() != b.User.String() {
		return false
	}
	// Decoded, because a server decodes %2e%2e before it follows it.
	return strings.HasPrefix(a.Path, b.Path) && !slices.Contains(strings.FieldsFunc(a.Path, isSlash), "..")
}

func isSlash(r rune) bool { return r == '/' || r == '\\' }

// Redacted is an address as people may see it: without user, password, query and
// fragment. A local path is left as it is.
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

// bucketPlace is where an object of a cloud's store lies.
type bucketPlace struct {
	scheme  string // as the address has it
	driver  string // s3, gs or azure
	bucket  string // Azure: the container
	account string // Azure alone: the storage account; empty where the environment names it
	domain  string // Azure alone: where the account lives, such as blob.core.windows.net; empty for the usual one
	key     string
}

// driver names the store behind a scheme of buckets, empty where it is none.
func driver(scheme string) string {
	switch scheme {
	case "s3", "s3a":
		return "s3"
	case "gs", "gcs":
		return "gs"
	case "az", "azure", "abfs", "abfss":
		return "azure"
	}
	return ""
}

// supported lists the schemes that Open knows, those of buckets included.
func supported() []string {
	return []string{"file", "http", "https", "s3", "gs", "gcs", "az", "azure", "abfs", "abfss"}
}

// parseBucket takes an address of a bucket apart. Azure's may name the account:
// abfs://container@account.dfs.core.windows.net/key.
func parseBucket(address string) (bucketPlace, error) {
	scheme, rest := split(address)
	place := bucketPlace{scheme: scheme, driver: driver(scheme)}
	if place.driver == "" {
		return place, &SchemeError{Scheme: scheme, Supported: supported()}
	}
	place.bucket, place.key, _ = strings.Cut(rest, "/")
	if place.driver == "azure" {
		if container, host, found := strings.Cut(place.bucket, "@"); found {
			place.bucket = container
			place.account, place.domain, _ = strings.Cut(host, ".")
			place.domain = strings.Replace(place.domain, "dfs.", "blob.", 1)
		}
	}
	if place.bucket == "" || place.key == "" {
		return place, &AccessError{Address: Redacted(address), Why: "the address names no object: " + scheme + "://BUCKET/PATH is expected"}
	}
	return place, nil
}
