package wire

import (
	"encoding/json"
	"strings"
	"sync"
	"unicode"
)

// opaqueWords returns the words of messages that give no reason: "Bad Request", "Provider
// returned error", "Request contains an invalid argument."
var opaqueWords = sync.OnceValue(func() map[string]bool {
	words := map[string]bool{}
	for _, word := range strings.Fields(`a an and api argument bad been by code contains error exception failed for from has http
		invalid is occurred of provider rejected request returned server status the this unknown upstream was with your 400`) {
		words[word] = true
	}
	return words
})

// opaqueCodes are the codes of any rejected request, in lower case and without marks.
var opaqueCodes = map[string]bool{
	"":                      true,
	"400":                   true,
	"badrequest":            true,
	"badrequesterror":       true,
	"badresponsestatuscode": true, // gateways
	"invalidargument":       true, // Google
	"invalidrequest":        true,
	"invalidrequesterror":   true, // OpenAI, Anthropic
	"validationexception":   true, // AWS
}

// opaque reports whether an error gives no reason: no parameter, no code of its own, and no
// word that says more than that the request was rejected.
func (f APIError) opaque() bool {
	words := func(text string) []string {
		return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	}
	if hasValue(f.Param) || hasValue(f.Details) || !opaqueCodes[strings.Join(words(f.code()), "")] {
		return false
	}
	for _, word := range words(f.Message) {
		if !opaqueWords()[word] {
			return false
		}
	}
	return true
}

// hasValue reports whether a field of JSON is not empty.
func hasValue(raw json.RawMessage) bool {
	switch string(raw) {
	case "", "null", `""`, "[]", "{}":
		return false
	}
	return true
}
