package provider

import (
	"net"
	"net/http"
	"time"
)

// newHTTP is a client for models. It has no limit of its own for an answer: a
// model that thinks for a minute before its first byte is at work, and each
// call carries the limit that the document declares.
func newHTTP() *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          256,
		MaxIdleConnsPerHost:   64, // as many rows as a step may work on at once
		IdleConnTimeout:       90 * time.Second,
	}}
}
