package spec

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Prefixes of entries of Flow.Allow. The name of a principal that signed in with a token
// begins with UserPrefix, so that it differs from the names of all API keys.
const (
	UserPrefix = "user:" // a user of the OpenID provider
	RolePrefix = "role:" // everyone with a role
)

// MaxPrincipalName is the maximum length in bytes of the name of an API key, user or role.
const MaxPrincipalName = 256

// IsKeyName reports whether a text is a valid name of an API key: up to 128 ASCII
// letters, digits, '.', '_' and '-', beginning with a letter or digit.
func IsKeyName(name string) bool {
	if name == "" || len(name) > MaxPrincipalName/2 {
		return false
	}
	for i, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		case i > 0 && strings.ContainsRune("._-", r):
		default:
			return false
		}
	}
	return true
}

// IsPrincipalName reports whether a text is a valid name of a user or role: printable,
// without blanks at its ends.
func IsPrincipalName(name string) bool {
	return name != "" && len(name) <= MaxPrincipalName && utf8.ValidString(name) &&
		strings.TrimSpace(name) == name && !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}

// CheckAllow returns an error if a text is not a valid entry of Flow.Allow: the name of
// an API key, "user:NAME" or "role:NAME".
func CheckAllow(entry string) error {
	for _, prefix := range []string{UserPrefix, RolePrefix} {
		if name, ok := strings.CutPrefix(entry, prefix); ok {
			if !IsPrincipalName(name) {
				return fmt.Errorf("%q has no valid name after %q", entry, prefix)
			}
			return nil
		}
	}
	switch {
	case entry == "":
		return errors.New("the entry is empty")
	case IsKeyName(entry):
		return nil
	case strings.Contains(entry, "*"):
		return fmt.Errorf("%q is a pattern, but entries are complete names", entry)
	case strings.Contains(entry, "@") && IsPrincipalName(entry):
		return fmt.Errorf("%q is not the name of an API key; a user is %q", entry, UserPrefix+entry)
	}
	return fmt.Errorf("%q is not the name of an API key", entry)
}

// AccessPolicy is the file of an organization that limits what all documents may reach. A
// key that is absent has no limit, an empty list allows nothing.
type AccessPolicy struct {
	Positioned
	// Hosts are the servers that documents may call: HOST, HOST:PORT or *.DOMAIN, and the names of buckets.
	Hosts []string `yaml:"hosts"`
	// Folders are the absolute paths of folders where documents may read and write files.
	Folders []string `yaml:"folders"`
	// Programs are the programs that documents may start, as they name them; python for Python functions.
	Programs []string `yaml:"programs"`
	// Providers are the providers of models that documents may use.
	Providers []string `yaml:"providers"`
	// Containment lists how programs of tools may be contained: bwrap, docker or none. Without none, programs must be contained.
	Containment []string `yaml:"containment"`
}

// Containment limits what the program of a tool can reach: only the files that are declared, no network unless it is
// declared, no other processes, and of the environment only what the tool declares.
type Containment struct {
	Positioned
	// Type is how the program is contained: bwrap (bubblewrap, on Linux), docker (a container of an image), auto (bwrap if it works on this computer, otherwise not at all, with a warning) or none.
	Type string `yaml:"type" jsonschema:"required,example=auto" validate:"oneof=auto bwrap docker none"`
	// Image is the image of the container; it is required with docker.
	Image string `yaml:"image"`
	// Network lets the program use the network.
	Network bool `yaml:"network" default:"false"`
	// Read lists files and folders that the program can read; relative ones are relative to the folder of the document.
	Read []string `yaml:"read"`
	// Write lists files and folders that the program can read and write; relative ones are relative to the folder of the document.
	Write []string `yaml:"write"`
}

// The values of Containment.Type.
const (
	ContainmentAuto   = "auto"   // bwrap if it works
	ContainmentBwrap  = "bwrap"  // bubblewrap
	ContainmentDocker = "docker" // a container of an image
	ContainmentNone   = "none"   // none
)
