package secrets

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/qtype-dev/qtype/internal/httpx"
)

const (
	maxAnswer  = 1 << 20                // bytes of a response that are read
	attempts   = 3                      // of a request whose failure may pass
	firstPause = 200 * time.Millisecond // before the second attempt; then twice as long
)

// errMissing reports a secret that a service does not have.
var errMissing = errors.New("the secret manager has no such secret, or the identity must not read it")

// call sends the request that next makes and decodes the JSON response to answer. A server
// that cannot be reached or is overloaded is asked again. Errors have the message of the
// service, never a secret.
func call(client *http.Client, next func() (*http.Request, error), answer any) error {
	pause := firstPause
	for attempt := 1; ; attempt++ {
		req, err := next()
		if err != nil {
			return err
		}
		again, err := send(client, req, answer)
		if err == nil || !again || attempt == attempts {
			return err
		}
		select {
		case <-req.Context().Done():
			return err
		case <-time.After(pause):
		}
		pause *= 2
	}
}

// send sends one request. again reports whether a later one may succeed.
func send(client *http.Client, req *http.Request, answer any) (again bool, err error) {
	server := httpx.Server(req.URL)
	resp, err := client.Do(req)
	if err != nil {
		return true, fmt.Errorf("cannot reach %s: %s", server, httpx.Reason(err))
	}
	defer func() { _ = resp.Body.Close() }() // only read
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	switch {
	case err != nil:
		return true, fmt.Errorf("lost the connection to %s: %s", server, httpx.Reason(err))
	case resp.StatusCode == http.StatusNotFound:
		return false, fmt.Errorf("%s: %w", server, errMissing)
	case resp.StatusCode != http.StatusOK:
		again = resp.StatusCode >= http.StatusInternalServerError || resp.StatusCode == http.StatusTooManyRequests
		return again, fmt.Errorf("%s: HTTP %d: %s", server, resp.StatusCode, httpx.SingleLine(serviceMessage(raw), 300))
	case json.Unmarshal(raw, answer) != nil:
		return false, fmt.Errorf("%s: the response is not that of a secret manager", server)
	}
	return false, nil
}

// serviceMessage returns the message of an error response: of AWS, of Google and Azure, or
// of Vault.
func serviceMessage(raw []byte) string {
	var e struct {
		Type    string          `json:"__type"`
		Message string          `json:"message"` // or Message: names are compared without case
		Error   json.RawMessage `json:"error"`
		Errors  []string        `json:"errors"`
	}
	var object struct {
		Message string `json:"message"`
	}
	switch {
	case json.Unmarshal(raw, &e) != nil:
		return "no reason was given"
	case json.Unmarshal(e.Error, &object) == nil && object.Message != "":
		return object.Message
	case len(e.Errors) > 0:
		return e.Errors[0]
	case e.Type != "" && e.Message != "":
		return e.Type + ": " + e.Message
	case e.Type != "" || e.Message != "":
		return e.Type + e.Message
	}
	return "no reason was given"
}
