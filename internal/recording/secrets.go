package recording

import (
	"cmp"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
)

// mask replaces a secret.
const mask = "***"

// secrets are the texts that recordings must not have.
type secrets []string

// tokenField is a field of JSON that servers put credentials into.
var tokenField = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`("(?:access_token|refresh_token|id_token|client_secret)"\s*:\s*)"(?:[^"\\]|\\.)*"`)
})

// jsonText is a text in JSON.
var jsonText = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`"(?:[^"\\]|\\.)*"`) })

// redact returns JSON without the secrets in its texts.
func (s *Session) redact(text []byte) []byte {
	s.mu.Lock()
	known := s.secrets
	s.mu.Unlock()
	var pairs []string
	for _, secret := range known {
		if len(secret) < redact.MinSecret { // it is replaced only where it is a whole parameter
			continue
		}
		escaped, _ := textfmt.CompactJSON(secret) // a text can be encoded
		for _, form := range []string{string(escaped[1 : len(escaped)-1]), url.QueryEscape(secret), url.PathEscape(secret)} {
			pairs = append(pairs, form, mask)
		}
	}
	if len(pairs) > 0 {
		replace := strings.NewReplacer(pairs...)
		text = jsonText().ReplaceAllFunc(text, func(one []byte) []byte { return []byte(replace.Replace(string(one))) })
	}
	return tokenField().ReplaceAll(s.forms.Bytes(text), []byte(`$1"`+mask+`"`))
}

// isSecret reports whether a whole text is a secret.
func (s *Session) isSecret(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.secrets, text)
}

// Redact lets r replace its secrets in recordings, too.
func (s *Session) Redact(r *redact.Redactor) { s.forms = r }

// Hide adds texts that recordings must not have.
func (s *Session) Hide(texts ...string) {
	s.forms.Add(texts...)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range texts {
		if t != "" && t != mask && !slices.Contains(s.secrets, t) {
			s.secrets = append(s.secrets, t)
		}
	}
	// The longest first, as one secret may contain another.
	slices.SortFunc(s.secrets, func(a, b string) int { return cmp.Or(len(b)-len(a), cmp.Compare(a, b)) })
}

// Secrets returns the secrets of an application's auths and of the environments of its
// tools.
func Secrets(app *spec.Application) []*spec.Secret {
	var all []*spec.Secret
	for _, d := range app.Documents() {
		for _, a := range authsOf(d) {
			all = append(all, secretsOf(reflect.ValueOf(a))...)
		}
		for _, t := range d.Tools {
			all = append(all, secretsOf(reflect.ValueOf(t))...)
		}
	}
	return all
}

func authsOf(d *spec.Document) []spec.Auth {
	if d.Application != nil {
		return d.Application.Auths
	}
	return d.Auths
}

// secretsOf returns the secrets in the fields of a struct.
func secretsOf(v reflect.Value) (all []*spec.Secret) {
	v = reflect.Indirect(v)
	if v.Kind() != reflect.Struct {
		return nil
	}
	for i := range v.NumField() {
		if !v.Type().Field(i).IsExported() {
			continue
		}
		switch f := v.Field(i).Addr().Interface().(type) {
		case *spec.Secret:
			all = append(all, f)
		case *map[string]spec.Secret:
			for _, s := range *f {
				all = append(all, &s)
			}
		}
	}
	return all
}

// HidePlaceholders replaces the secrets of the auths of an application, so that a replay
// needs none of them and sends the same as the recording shows.
func HidePlaceholders(app *spec.Application) {
	for _, d := range app.Documents() {
		for _, a := range authsOf(d) {
			for _, s := range secretsOf(reflect.ValueOf(a)) {
				*s = spec.NewSecret(mask)
			}
		}
	}
}
