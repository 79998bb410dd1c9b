package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec"
)

// Credential is what an auth holds. Its zero value is for an index without auth.
type Credential struct {
	Kind     string        // the type of the auth, such as api_key
	Key      string        // the API key, the token or the password
	User     string        // of the type basic
	Identity *spec.AWSAuth // of the type aws
}

// findCredential reads the auth of an index.
func findCredential(row spec.IndexStore, x spec.Index, opts Options) (Credential, error) {
	ref := x.Common().Auth
	if ref.To == nil {
		if ref.ID != "" {
			return Credential{}, fmt.Errorf("auth names %q, which is not an auth", ref.ID)
		}
		return Credential{}, nil
	}
	kind := spec.TypeName(ref.To)
	if !slices.Contains(row.Auths, kind) {
		if len(row.Auths) == 0 {
			return Credential{}, nil // validate reports that it has no effect
		}
		return Credential{}, fmt.Errorf("the store %s takes an auth of type %s; %s is %s", row.Name, strings.Join(row.Auths, " or "), ref.To.EntityID(), kind)
	}
	c, err := revealAuth(ref.To, opts)
	if err != nil {
		return Credential{}, fmt.Errorf("auth %s: %w", ref.To.EntityID(), err)
	}
	c.Kind = kind
	return c, nil
}

// revealAuth resolves the secrets of an auth.
func revealAuth(auth spec.Auth, opts Options) (c Credential, err error) {
	switch a := auth.(type) {
	case spec.KeyAuth:
		secret, _ := a.ModelKey()
		c.Key, err = reveal(secret, opts)
	case *spec.BasicAuth:
		c.User = a.Username
		c.Key, err = reveal(a.Password, opts)
	case *spec.AWSAuth:
		c.Identity = a // its secrets are resolved with each request
	}
	return c, err
}

// reveal returns the text of a secret that a header can carry.
func reveal(s spec.Secret, opts Options) (string, error) {
	text, err := s.Resolve(opts.Secret)
	if err != nil {
		return "", err
	}
	if problem := spec.KeyProblem(text); problem != "" {
		return "", errors.New("it " + problem)
	}
	return strings.TrimSpace(text), nil
}
