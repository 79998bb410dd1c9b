package httpx

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"
)

// Reason tells in plain words why a call did not come through: "connection
// refused", without the operation, the addresses and the URL that Go puts before it.
func Reason(err error) string {
	var dns *net.DNSError
	var call *os.SyscallError
	var errno syscall.Errno
	var cert *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), isTimeout(err):
		return "no answer in time"
	case errors.As(err, &dns):
		return "no address for host " + dns.Name
	case errors.As(err, &cert):
		return "the certificate is not trusted: " + certReason(cert.Err)
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"): // no type of its own
		return "the server does not speak TLS; is it http instead of https?"
	case errors.As(err, &call):
		return call.Err.Error()
	case errors.As(err, &errno):
		return errno.Error()
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "the connection was closed before the answer was complete"
	}
	var op *net.OpError
	if errors.As(err, &op) {
		return SingleLine(op.Err.Error(), 200)
	}
	var u *url.Error
	if errors.As(err, &u) {
		return SingleLine(u.Err.Error(), 200)
	}
	return SingleLine(err.Error(), 200)
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

func certReason(err error) string {
	var host x509.HostnameError
	if errors.As(err, &host) {
		return "it is for another host"
	}
	return SingleLine(strings.TrimPrefix(err.Error(), "x509: "), 200)
}

// SingleLine makes one line of a text from elsewhere: control characters and runs of
// blanks become one blank, and what is longer than limit characters is cut.
func SingleLine(text string, limit int) string {
	var b strings.Builder
	blank := false
	n := 0
	for _, r := range strings.ToValidUTF8(text, string(utf8.RuneError)) {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			blank = b.Len() > 0
			continue
		}
		if n++; n > limit {
			return b.String() + "…"
		}
		if blank {
			b.WriteByte(' ')
			blank = false
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Scrub takes a secret out of a text from elsewhere, whole or as servers quote
// it: any word that begins as the secret does.
func Scrub(text, secret string) string {
	const hidden = "***"
	if secret == "" {
		return text
	}
	text = strings.ReplaceAll(text, secret, hidden)
	const head = 6 // as many first characters as providers leave readable
	if len(secret) < 2*head {
		return text
	}
	for from := 0; ; {
		i := strings.Index(text[from:], secret[:head])
		if i < 0 {
			return text
		}
		start := from + i
		end := start
		for end < len(text) && text[end] > ' ' {
			end++
		}
		text = text[:start] + hidden + text[end:]
		from = start + len(hidden)
	}
}

// Server is a URL as an error may show it: without user, password, query and fragment.
func Server(u *url.URL) string {
	shown := *u
	shown.User, shown.RawQuery, shown.Fragment, shown.RawFragment, shown.ForceQuery = nil, "", "", "", false
	return shown.String()
}
