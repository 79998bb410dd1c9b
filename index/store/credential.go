package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec"
)

// credential is what an auth holds. Its zero value is for an index without auth.
type credential struct {
	kind     string        // the type of the auth
	key      string        // the API key, the token or the password
	user     string        // of the type basic
	identity *spec.AWSAuth // of the type aws
}

// findCredential reads the auth of an index.
func findCredential(row spec.IndexStore, x spec.Index, opts Options) (credential, error) {
	ref := x.Common().Auth
	if ref.To == nil {
		if ref.ID != "" {
			return credential{}, fmt.Errorf("auth names %q, which is not an auth", ref.ID)
		}
		return credential{}, nil
	}
	kind := spec.TypeName(ref.To)
	if !slices.Contains(row.Auths, kind) {
		if len(row.Auths) == 0 {
			return credential{}, nil // validate reports that it has no effect
		}
		return credential{}, fmt.Errorf("the store %s takes an auth of type %s; %s is %s", row.Name, strings.Join(row.Auths, " or "), ref.To.EntityID(), kind)
	}
	c, err := revealAuth(ref.To, opts)
	if err != nil {
		return credential{}, fmt.Errorf("auth %s: %w", ref.To.EntityID(), err)
	}
	c.kind = kind
	return c, nil
}

// revealAuth resolves the secrets of an auth.
func revealAuth(auth spec.Auth, opts Options) (c credential, err error) {
	switch a := auth.(type) {
	case spec.KeyAuth:
		secret, _ := a.ModelKey()
		c.key, err = reveal(secret, opts)
	case *spec.BasicAuth:
		c.user = a.Username
		c.key, err = reveal(a.Password, opts)
	case *spec.AWSAuth:
		c.identity = a // its secrets are resolved with each request
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
