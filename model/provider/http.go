package provider

import (
	"net/http"

	"github.com/qtype-dev/qtype/internal/httpx"
)

// calls is how many rows a step may work on at once, and so ask one server.
const calls = 64

// newHTTP is a client for models. It has no limit of its own for an answer: a
// model that thinks for a minute before its first byte is at work, and each
// call carries the limit that the document declares.
func newHTTP() *http.Client { return &http.Client{Transport: httpx.Transport(calls)} }
