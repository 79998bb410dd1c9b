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

	"github.com/qtype-dev/qtype/internal/redact"
)

// Reason returns why a call failed, such as "connection refused", without the
// operation, the addresses and the URL that Go's errors begin with.
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
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"): // has no type
		return "the server does not use TLS: use http instead of https"
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

// SingleLine returns text on one line: it collapses white space and control
// characters, and cuts the text after limit characters.
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

// Scrub removes a secret from the text of a server: the whole secret, and words that
// begin as the secret does, because servers quote it abbreviated. A secret that is too short
// for package redact is removed only as a whole word, and not with less than 3 characters: any text
// has those.
func Scrub(text, secret string) string {
	const mask, shortest = "***", 3
	switch {
	case len(secret) < shortest:
		return text
	case len(secret) < redact.MinSecret:
		return replaceWord(text, secret, mask)
	}
	text = strings.ReplaceAll(text, secret, mask)
	const head = 6 // characters that providers do not mask
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
		text = text[:start] + mask + text[end:]
		from = start + len(mask)
	}
}

// replaceWord replaces a word where no letter or digit precedes or follows it.
func replaceWord(text, word, with string) string {
	isPart := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	var b strings.Builder
	for at := 0; ; {
		i := strings.Index(text[at:], word)
		if i < 0 {
			b.WriteString(text[at:])
			return b.String()
		}
		before, _ := utf8.DecodeLastRuneInString(text[:at+i])
		after, _ := utf8.DecodeRuneInString(text[at+i+len(word):])
		b.WriteString(text[at : at+i])
		if isPart(before) || isPart(after) {
			b.WriteString(word)
		} else {
			b.WriteString(with)
		}
		at += i + len(word)
	}
}

// Server returns a URL for messages: without user, password, query and fragment.
func Server(u *url.URL) string {
	redacted := *u
	redacted.User, redacted.RawQuery, redacted.Fragment, redacted.RawFragment, redacted.ForceQuery = nil, "", "", "", false
	return redacted.String()
}
