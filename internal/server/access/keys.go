package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/qtype-dev/qtype/spec"
)

const (
	minKeyLength = 16     // characters of an API key
	maxKeys      = 10_000 // each request is compared with all of them
	hashName     = "sha256"
	keyPrefix    = "qtype_" // of generated keys, so that scanners for secrets find them
)

// apiKey is an API key by its hash.
type apiKey struct {
	name string
	hash [sha256.Size]byte
}

// keyring is an immutable set of API keys.
type keyring []apiKey

// find returns the name of a key. It compares hashes, always all of them and each in
// constant time, so the duration depends neither on the key nor on its position.
func (k keyring) find(key string) (name string, ok bool) {
	hash := sha256.Sum256([]byte(key))
	found := -1
	for i := range k {
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(hash[:], k[i].hash[:]), i, found)
	}
	if found < 0 {
		return "", false
	}
	return k[found].name, true
}

// add appends a key, unless its name or the key is already used.
func (k keyring) add(key apiKey) (keyring, error) {
	if len(k) == maxKeys {
		return nil, fmt.Errorf("there are more than %d API keys", maxKeys)
	}
	for _, other := range k {
		if other.name == key.name {
			return nil, fmt.Errorf("two API keys have the name %q", key.name)
		}
		if other.hash == key.hash {
			return nil, fmt.Errorf("the API keys %q and %q are equal", other.name, key.name)
		}
	}
	return append(k, key), nil
}

// parseKeys reads "name:key,name:key". Errors do not contain keys.
func parseKeys(text string) (keyring, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var keys keyring
	for i, entry := range strings.Split(text, ",") {
		name, key, ok := strings.Cut(strings.TrimSpace(entry), ":")
		switch {
		case !ok:
			return nil, fmt.Errorf("API key %d is not name:key", i+1)
		case !spec.IsKeyName(name):
			return nil, fmt.Errorf("the name of API key %d may contain only letters, digits, '.', '_' and '-'", i+1)
		case len(key) < minKeyLength:
			return nil, fmt.Errorf("the API key %q is shorter than %d characters", name, minKeyLength)
		case !isHeaderText(key):
			return nil, fmt.Errorf("the API key %q has characters that a header cannot contain", name)
		}
		var err error
		if keys, err = keys.add(apiKey{name, sha256.Sum256([]byte(key))}); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// isHeaderText reports whether a text is visible ASCII without blanks.
func isHeaderText(text string) bool {
	for _, b := range []byte(text) {
		if b <= ' ' || b > '~' {
			return false
		}
	}
	return true
}

// parseKeyFile reads lines of the form name:sha256:HEX, blank lines and comments that
// begin with #.
func parseKeyFile(text string) (keyring, error) {
	var keys keyring
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		key, err := parseKeyLine(line)
		if err == nil {
			keys, err = keys.add(key)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("there is no API key")
	}
	return keys, nil
}

func parseKeyLine(line string) (apiKey, error) {
	name, rest, _ := strings.Cut(line, ":")
	method, digits, ok := strings.Cut(rest, ":")
	if !ok || method != hashName {
		return apiKey{}, errors.New("not name:sha256:HEX; create a line with qtype serve --hash-key NAME")
	}
	if !spec.IsKeyName(name) {
		return apiKey{}, errors.New("the name may contain only letters, digits, '.', '_' and '-'")
	}
	hash, err := hex.DecodeString(digits)
	if err != nil || len(hash) != sha256.Size {
		return apiKey{}, fmt.Errorf("the hash of %q is not %d hexadecimal digits", name, 2*sha256.Size)
	}
	return apiKey{name, [sha256.Size]byte(hash)}, nil
}

// HashKey creates a random API key of 256 bits, and its line for a key file.
func HashKey(name string) (key, line string, err error) {
	if !spec.IsKeyName(name) {
		return "", "", fmt.Errorf("the name %q may contain only letters, digits, '.', '_' and '-'", name)
	}
	random := make([]byte, sha256.Size)
	_, _ = rand.Read(random) // never fails
	key = keyPrefix + base64.RawURLEncoding.EncodeToString(random)
	hash := sha256.Sum256([]byte(key))
	return key, name + ":" + hashName + ":" + hex.EncodeToString(hash[:]), nil
}

// PrintHashKey creates an API key (qtype serve --hash-key NAME). It writes the line for
// the key file to stdout, so that it can be appended to the file, and the key, which is
// stored nowhere, to stderr.
func PrintHashKey(stdout, stderr io.Writer, name string) error {
	key, line, err := HashKey(name)
	if err != nil {
		return err
	}
	if _, err = fmt.Fprintln(stdout, line); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stderr, "API key of %s, shown only now: %s\n", name, key)
	return err
}
