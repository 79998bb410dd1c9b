package conformance

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// secret authenticates what the server issues. It is the same in all processes, so that a replica or a
// server after a restart accepts what another one issued. It protects nothing.
const secret = "conformance of clients, version 1" //nolint:gosec // it protects nothing

// alphabet has the characters of ids: Mistral allows nine of these.
const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// mark begins the bytes of a token.
const mark = "qc1\n"

// token is the content of an opaque item: a signature, or what a provider encrypts. It names the item, so that
// the server recognizes it without a memory.
type token struct {
	Origin   string // the server that issued it, and the account
	Model    string // the model that made the item
	Scenario string // the scenario
	Nonce    string // identifies the answer
	Step     int    // the step of the scenario
	Reasons  bool   // whether the model was reasoning
	Item     int    // the index of the item in the answer
	Prefix   string // hash of the conversation before the answer
}

// String returns the token in base64.
func (t token) String() string {
	plain := mark + strings.Join([]string{t.Origin, t.Model, t.Scenario, t.Nonce, strconv.Itoa(t.Step), strconv.FormatBool(t.Reasons), strconv.Itoa(t.Item), t.Prefix}, "\n")
	return base64.StdEncoding.EncodeToString(append([]byte(plain), seal(plain)[:12]...))
}

// parseToken reads a token; ok is false for a text that the server has not issued.
func parseToken(text string) (t token, ok bool) {
	if !strings.HasPrefix(text, base64.StdEncoding.EncodeToString([]byte(mark))[:5]) {
		return t, false
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(raw) < len(mark)+12 {
		return t, false
	}
	plain := string(raw[:len(raw)-12])
	fields := strings.Split(strings.TrimPrefix(plain, mark), "\n")
	if len(fields) != 8 || !hmac.Equal(raw[len(raw)-12:], seal(plain)[:12]) {
		return t, false
	}
	t = token{Origin: fields[0], Model: fields[1], Scenario: fields[2], Nonce: fields[3], Reasons: fields[5] == "true", Prefix: fields[7]}
	t.Step, _ = strconv.Atoi(fields[4]) // the seal proves that these are numbers
	t.Item, _ = strconv.Atoi(fields[6])
	return t, true
}

var tokenPattern = regexp.MustCompile(`cWMxC[0-9A-Za-z+/]{40,}={0,2}`)

// findTokens returns the tokens within a text.
func findTokens(text string) (list []token) {
	if !strings.Contains(text, "cWMxC") {
		return nil
	}
	for _, found := range tokenPattern.FindAllString(text, -1) {
		if t, ok := parseToken(found); ok {
			list = append(list, t)
		}
	}
	return list
}

// ref is the short name of an item, of nine characters: a call has it as its id, and a text contains it.
type ref struct {
	Step    int    // the step of the scenario
	Reasons bool   // whether the model was reasoning
	Item    int    // the index of the item in the answer
	Nonce   string // identifies the answer: four characters
}

// text returns the characters of the ref.
func (r ref) text(maker, scenario string) string {
	flag := 0
	if r.Reasons {
		flag = 1
	}
	head := string([]byte{alphabet[(r.Step*2+flag)%62], alphabet[r.Item%62]}) + r.Nonce
	return head + letters(seal("ref", maker, scenario, head), 3)
}

// parseRef reads a ref that this maker has issued in the scenario.
func parseRef(text, maker, scenario string) (ref, bool) {
	if len(text) < 9 {
		return ref{}, false
	}
	text = text[len(text)-9:]
	head := text[:6]
	first, item := strings.IndexByte(alphabet, head[0]), strings.IndexByte(alphabet, head[1])
	if first < 0 || item < 0 || letters(seal("ref", maker, scenario, head), 3) != text[6:] {
		return ref{}, false
	}
	return ref{Step: first / 2, Reasons: first%2 == 1, Item: item, Nonce: head[2:]}, true
}

var refPattern = regexp.MustCompile(`\b[0-9A-Za-z]{9}\b`)

// findRef returns the ref within a text.
func findRef(text, maker, scenario string) (ref, bool) {
	for _, word := range refPattern.FindAllString(text, -1) {
		if r, ok := parseRef(word, maker, scenario); ok {
			return r, true
		}
	}
	return ref{}, false
}

// seal returns the authentication code of texts.
func seal(parts ...string) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	for _, p := range parts {
		_, _ = fmt.Fprintf(mac, "%d:%s", len(p), p) // a hash never fails
	}
	return mac.Sum(nil)
}

// letters returns n characters of the alphabet for a hash.
func letters(sum []byte, n int) string {
	out := make([]byte, n)
	for i := range out {
		out[i] = alphabet[int(sum[i])%len(alphabet)]
	}
	return string(out)
}
