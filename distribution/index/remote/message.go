package remote

import (
	"encoding/base64"
	"encoding/json"

	"github.com/qtype-dev/qtype/internal/httpx"
)

// maxMessage is the number of characters of a server's message that an error repeats.
const maxMessage = 300

// message returns the description of an error in an answer: the text of one of the usual keys,
// else the whole answer.
func message(answer []byte) string {
	var v any
	if json.Unmarshal(answer, &v) == nil {
		if text := findMessage(v, 0); text != "" {
			return httpx.Excerpt(text, maxMessage)
		}
	}
	return httpx.Excerpt(string(answer), maxMessage)
}

// findMessage looks for the text of an error in the usual keys.
func findMessage(v any, depth int) string {
	const maxDepth = 4
	switch x := v.(type) {
	case string:
		return x
	case []any:
		if len(x) > 0 && depth < maxDepth {
			return findMessage(x[0], depth+1)
		}
	case map[string]any:
		if depth == maxDepth {
			return ""
		}
		for _, key := range []string{"reason", "message", "error", "status", "detail", "root_cause"} {
			if text := findMessage(x[key], depth+1); text != "" {
				return text
			}
		}
	}
	return ""
}

// encodeBasic returns the credentials of Authorization: Basic.
func encodeBasic(user, password string) string {
	return base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
}

// Basic returns the value of Authorization for a user and a password.
func Basic(user, password string) string { return "Basic " + encodeBasic(user, password) }

// OneLine returns the text of a server for an error.
func OneLine(text string) string { return httpx.SingleLine(text, maxMessage) }
