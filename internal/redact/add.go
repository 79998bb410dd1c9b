package redact

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// MinSecret is the length in bytes of the shortest secret that is replaced: shorter texts are
// found in any text.
const MinSecret = 6

const (
	minLine   = 16 // bytes of a line of a secret with several lines
	plainWord = 12 // bytes; a shorter text of letters or digits only is replaced as a whole word
)

// ordinary are values in the place of secrets that are none.
var ordinary = map[string]bool{
	"false": true, "default": true, "disabled": true, "enabled": true, "required": true, "optional": true,
	"password": true, "secret": true, "changeme": true, "example": true, "anonymous": true,
	"localhost": true, "postgres": true, "dummy-key": true, "no-key": true, "not-needed": true, "ollama": true,
}

// schemes are what precedes credentials in headers.
var schemes = []string{"Bearer ", "Basic ", "Token ", "ApiKey ", "Key "}

// isDistinct reports whether a text can be replaced wherever it occurs.
func isDistinct(text string) bool {
	return len(text) >= MinSecret && !ordinary[strings.ToLower(text)] && !strings.Contains(text, "${") && strings.Trim(text, "*.xX- ") != ""
}

// Add adds secrets: the text itself, what follows the scheme of a header, the password and
// the tokens of an address, the lines of a key in several lines, and the fields of a JSON
// object with the name of a secret. A text of less than 6 bytes, and a word such as true,
// default or password, is not replaced. A text of less than 12 letters or digits is
// replaced only as a whole word.
func (r *Redactor) Add(texts ...string) {
	if r == nil {
		return
	}
	for _, text := range texts {
		r.addValue(strings.TrimSpace(text))
	}
}

func (r *Redactor) addValue(text string) {
	switch {
	case len(text) < MinSecret:
		return
	case strings.Contains(text, "://"):
		r.AddAddress(text)
		return
	case text[0] == '{':
		if r.addObject(text) {
			return
		}
	}
	for _, scheme := range schemes {
		if len(text) > len(scheme) && strings.EqualFold(text[:len(scheme)], scheme) {
			text = strings.TrimSpace(text[len(scheme):])
			r.addBasic(text)
		}
	}
	if !strings.Contains(text, "\n") {
		r.add(text)
		return
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); len(line) >= minLine && !strings.HasPrefix(line, "-----") {
			r.add(line)
		}
	}
}

// addBasic adds the password of the credentials of basic authentication.
func (r *Redactor) addBasic(text string) {
	if plain, err := base64.StdEncoding.DecodeString(text); err == nil {
		if _, password, ok := strings.Cut(string(plain), ":"); ok {
			r.add(password)
		}
	}
}

// addObject adds the secrets of a JSON object, and reports whether it is one.
func (r *Redactor) addObject(text string) bool {
	var fields map[string]any
	if json.Unmarshal([]byte(text), &fields) != nil {
		return false
	}
	for key, field := range fields {
		if value, ok := field.(string); ok && (NamesSecret(key) || LooksSecret(value)) {
			r.Add(value)
		}
	}
	return true
}

// AddAddress adds the secrets of a URL: the password, the values of parameters with the
// name of a secret, and parts of the path and the query that look like tokens.
func (r *Redactor) AddAddress(text string) {
	if r == nil {
		return
	}
	if m := userPassword().FindStringSubmatch(text); m != nil {
		r.add(m[1])
	}
	u, err := url.Parse(text)
	if err != nil {
		return
	}
	if password, ok := u.User.Password(); ok {
		r.add(password)
	} else if name := u.User.Username(); LooksSecret(name) {
		r.add(name)
	}
	for name, values := range u.Query() {
		for _, value := range values {
			if NamesSecret(name) || isParameter[strings.ToLower(name)] || LooksSecret(value) {
				r.add(value)
			}
		}
	}
	for part := range strings.SplitSeq(u.Path, "/") {
		if strings.HasPrefix(u.Scheme, "http") && LooksSecret(part) {
			r.add(part)
		}
	}
}

// WithoutCredentials returns an address without its user, its password, and parameters with the name or
// value of a secret. Another text is unchanged.
func WithoutCredentials(text string) string {
	address, parameters, hasParameters := strings.Cut(text, "?")
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return text
	}
	host, path, _ := strings.Cut(rest, "/")
	if at := strings.LastIndexByte(host, '@'); at >= 0 {
		host = host[at+1:]
	}
	address = scheme + "://" + host + "/" + path
	if !hasParameters {
		return address
	}
	kept := slices.DeleteFunc(strings.Split(parameters, "&"), func(parameter string) bool {
		name, value, _ := strings.Cut(parameter, "=")
		return NamesSecret(name) || isParameter[strings.ToLower(name)] || LooksSecret(value)
	})
	return address + "?" + strings.Join(kept, "&")
}

// userPassword is the password in an address, which may be invalid otherwise.
var userPassword = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`//[^/\s:@]*:([^/\s]+)@`) })

// isParameter are further names of parameters of URLs with secrets.
var isParameter = map[string]bool{"key": true, "sig": true, "signature": true, "x-amz-signature": true, "code": true, "auth": true, "subscription-key": true}

// prefixes begin the tokens of well-known services.
var prefixes = []string{"sk-", "sk_live_", "sk_test_", "rk_live_", "ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "xapp-", "AKIA", "ASIA", "AIza", "ya29.", "eyJ", "hf_", "hvs.", "npm_", "pypi-", "SG."}

// HasTokenPrefix reports whether a text begins as the tokens of a well-known service.
func HasTokenPrefix(text string) bool {
	if len(text) < minLine || strings.ContainsAny(text, " \t\n") {
		return false
	}
	for _, p := range prefixes {
		if strings.HasPrefix(text, p) {
			return true
		}
	}
	return false
}

// LooksSecret reports whether a text without a name has the form of a secret: the prefix of
// a well-known service, or at least 16 letters and digits in a row with capital letters,
// small letters and two digits. Names of models, hashes and UUIDs have not.
func LooksSecret(text string) bool {
	if len(text) < minLine || strings.ContainsAny(text, " \t\n") {
		return false
	}
	if HasTokenPrefix(text) {
		return true
	}
	run, upper, lower, digits := 0, 0, 0, 0
	for _, c := range text {
		switch {
		case c >= 'A' && c <= 'Z':
			upper++
		case c >= 'a' && c <= 'z':
			lower++
		case c >= '0' && c <= '9':
			digits++
		default:
			run, upper, lower, digits = 0, 0, 0, 0
			continue
		}
		if run++; run >= minLine && upper > 0 && lower > 0 && digits > 1 {
			return true
		}
	}
	return false
}

// AddArguments adds the secrets of the arguments of a program: --token VALUE, --token=VALUE,
// PASSWORD=VALUE, addresses, and what looks like a token.
func (r *Redactor) AddArguments(args []string) {
	if r == nil {
		return
	}
	for i, arg := range args {
		name, value, joined := strings.Cut(arg, "=")
		switch {
		case joined && isSecretFlag(name):
			r.Add(value)
		case strings.Contains(arg, "://"):
			r.AddAddress(arg)
		case HasTokenPrefix(arg):
			r.Add(arg)
		case i > 0 && strings.HasPrefix(args[i-1], "-") && isSecretFlag(args[i-1]):
			r.Add(arg)
		}
		if header, value, ok := strings.Cut(arg, ":"); ok && NamesSecret(strings.TrimSpace(header)) {
			r.Add(value) // curl -H 'Authorization: Bearer …'
		}
	}
}

func isSecretFlag(name string) bool {
	return NamesSecret(name) || strings.HasSuffix(strings.ToLower(name), "-key") || strings.HasSuffix(strings.ToLower(name), "-pat")
}

// NamesSecretVariable reports whether an environment variable usually has a secret.
func NamesSecretVariable(name string) bool {
	upper := strings.ToUpper(name)
	for _, end := range []string{"_KEY", "_PASS", "_PAT", "_PWD", "_CREDENTIAL", "_CREDENTIALS", "_DSN", "_WEBHOOK", "_WEBHOOK_URL"} {
		if strings.HasSuffix(upper, end) {
			return true
		}
	}
	return NamesSecret(name)
}
