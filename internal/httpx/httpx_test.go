package httpx_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/httpx"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 21, 7, 30, 0, 0, time.UTC)
	tests := map[string]time.Duration{
		"": 0, "5": 5 * time.Second, " 1.5 ": 1500 * time.Millisecond, "-1": 0, "soon": 0, "NaN": 0, "Inf": 0, "1e300": 0,
		"Sat, 21 Nov 2026 07:30:30 GMT": 30 * time.Second, "Sat, 21 Nov 2026 07:29:30 GMT": 0, "Saturday, 21-Nov-26 07:31:00 GMT": time.Minute,
	}
	for text, want := range tests {
		if got := httpx.RetryAfter(http.Header{"Retry-After": {text}}, now); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestAttempts_Next(t *testing.T) {
	tests := map[string]struct {
		policy     httpx.Policy
		retryAfter time.Duration
		want       int
	}{
		"none":                 {httpx.Policy{}, 0, 1},
		"three":                {httpx.Policy{MaxAttempts: 3, InitialDelay: time.Microsecond, MaxDelay: time.Millisecond}, 0, 3},
		"retry after":          {httpx.Policy{MaxAttempts: 2, InitialDelay: time.Hour, MaxDelay: time.Millisecond}, time.Millisecond, 2},
		"retry after too long": {httpx.Policy{MaxAttempts: 3, InitialDelay: time.Microsecond, MaxDelay: time.Millisecond}, time.Second, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a := tt.policy.Start()
			for a.Next(t.Context(), tt.retryAfter) {
			}
			if a.Count() != tt.want {
				t.Errorf("%d attempts, want %d", a.Count(), tt.want)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if (httpx.Policy{MaxAttempts: 2, InitialDelay: time.Hour, MaxDelay: time.Hour}).Start().Next(ctx, 0) {
		t.Error("Next returned true after ctx ended")
	}
}

func TestReason(t *testing.T) {
	wrap := func(err error) error {
		return &url.Error{Op: "Get", URL: "http://h/?key=secret", Err: &net.OpError{Op: "dial", Net: "tcp", Err: err}}
	}
	tests := map[string]error{
		"connection refused":       wrap(os.NewSyscallError("connect", syscall.ECONNREFUSED)),
		"no address for host shop": wrap(&net.DNSError{Err: "no such host", Name: "shop", IsNotFound: true}),
		"no answer in time":        wrap(os.ErrDeadlineExceeded),
		"the connection was closed before the answer was complete": fmt.Errorf("reading: %w", io.ErrUnexpectedEOF),
		"strange": wrap(errors.New("strange")),
		"plain":   &url.Error{Op: "Get", URL: "http://h/?key=secret", Err: errors.New("plain")},
		"bare":    errors.New("bare"),
	}
	for want, err := range tests {
		if got := httpx.Reason(err); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestSingleLine(t *testing.T) {
	tests := map[string]string{"": "", " a\n\tb\x00\x1b[31mc ": "a b [31mc", "abcdef": "abcde…", "äöüßé": "äöüßé", "\xff\xfe": "\uFFFD"}
	for text, want := range tests {
		if got := httpx.SingleLine(text, 5+strings.Count(text, "\x1b")*5); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestExcerpt(t *testing.T) {
	for text, want := range map[string]string{
		"<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body><center><h1>502 Bad Gateway</h1>":       "502 Bad Gateway",
		"\ufeff <!DOCTYPE html><html lang=en><TITLE id=a>\n shop &#124; 524: A&nbsp;timeout\n occurred</TITLE>": "shop | 524: A timeout occurred",
		"<html><title></title><body><h1>Not here</h1>":                                                          "Not here",
		"<html><body>no title": "",
		"<html><title>cut":     "",
		"<?xml version='1.0'?><Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>": "Access Denied",
		"upstream failed: <html><title>503</title></html>":                                              "upstream failed: 503",
		"<400> InternalError: Range of input length":                                                    "<400> InternalError: Range of input length",
		"<think> is not a tag": "<think> is not a tag",
		"no route to http://ada:pw@proxy.local:3128/x, https://tok@h": "no route to http://proxy.local:3128/x, https://h",
		"<title>\x1b[31mred\x1b[0m https://u:p@h</title>":             "[31mred [0m https://h",
	} {
		if got := httpx.Excerpt(text, 100); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := httpx.Excerpt("<title>"+strings.Repeat("x", 99)+"</title>", 5); got != "xxxxx…" {
		t.Error(got)
	}
}

func TestScrub(t *testing.T) {
	const key = "sk-proj-0123456789"
	tests := map[string]string{
		"wrong key sk-proj-0123456789!":   "wrong key ***!",
		"wrong key sk-proj-****6789. See": "wrong key *** See",
		"sk-pro and sk-proX, sk-pr":       "*** and *** sk-pr",
		"nothing":                         "nothing",
	}
	for text, want := range tests {
		if got := httpx.Scrub(text, key); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	for _, short := range [][3]string{{"ab", "", "ab"}, {"bad request", "e", "bad request"}, {"bad request", "bad", "*** request"},
		{"badly, k-1.", "bad", "badly, k-1."}, {"key k-1, k-12, (k-1)", "k-1", "key ***, k-12, (***)"}, {"wr0ng", "wr0ng", "***"}} {
		if got := httpx.Scrub(short[0], short[1]); got != short[2] {
			t.Errorf("%q without %q: got %q, want %q", short[0], short[1], got, short[2])
		}
	}
}

func TestServer(t *testing.T) {
	u, err := url.Parse("https://ann:secret@h:8080/a%2Fb?key=secret#secret")
	if err != nil {
		t.Fatal(err)
	}
	if got := httpx.Server(u); got != "https://h:8080/a%2Fb" {
		t.Error(got)
	}
}
