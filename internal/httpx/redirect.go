package httpx

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
)

const maxRedirects = 10

// plainHeaders are the headers of a request that another server than the first may get.
// Any other may be a credential.
var plainHeaders = []string{"Accept", "Accept-Encoding", "Accept-Language", "Content-Type", "If-Modified-Since", "If-None-Match", "Range", "User-Agent"}

// CheckRedirect is for clients that follow redirects: at most ten, to http and https. What LimitHeaders
// removes is not sent.
func CheckRedirect(req *http.Request, via []*http.Request) error {
	if len(via) >= maxRedirects {
		return fmt.Errorf("stopped after %d redirects", maxRedirects)
	}
	if req.URL.Scheme != "http" && req.URL.Scheme != "https" {
		return errors.New("redirect to an address that is not http or https")
	}
	LimitHeaders(req, via[0])
	return nil
}

// LimitHeaders removes from a request that follows a redirect what is only for the server of the
// first request: credentials and all other headers with a special meaning. The header Referer, which has the
// query of the address before, is never sent.
func LimitHeaders(req, first *http.Request) {
	req.Header.Del("Referer")
	if req.URL.Scheme == first.URL.Scheme && req.URL.Host == first.URL.Host {
		return
	}
	for name := range req.Header {
		if !slices.Contains(plainHeaders, name) {
			req.Header.Del(name)
		}
	}
	req.Host = ""
}
