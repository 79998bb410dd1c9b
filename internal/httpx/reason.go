package httpx

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"html"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
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

// markup finds the begin of a page of a server or a proxy, or of an XML document; titles finds the text
// that says what it is about; userinfo finds the user and password of a URL.
var (
	markup = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^[\s\x{feff}]*<(?:!doctype html|html|\?xml|head|body|title|h1|error)\b|<!doctype html|<html\b|<\?xml`)
	})
	titles = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)<(?:title|h1|message)\b[^>]*>([^<]*[^<\s][^<]*)<`)
	})
	userinfo = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)\b([a-z][a-z0-9+.-]*://)[^\s/@"'<>]+@`) })
)

// ForeignCoding returns the content coding of an answer that no client of this program requests, empty
// for none. Clients have undone gzip, and some servers send other words, such as utf-8.
func ForeignCoding(h http.Header) string {
	coding := strings.ToLower(h.Get("Content-Encoding"))
	if slices.Contains([]string{"br", "zstd", "deflate", "compress", "gzip", "x-gzip"}, coding) {
		return coding
	}
	return ""
}

// Excerpt returns a text of a server for an error message, on one line that is cut after limit
// characters: of a page its title, empty if it has none. URLs are without users and passwords.
func Excerpt(text string, limit int) string {
	if page := markup().FindStringIndex(text); page != nil {
		title := ""
		if found := titles().FindStringSubmatch(text[page[0]:]); found != nil {
			title = html.UnescapeString(found[1])
		}
		text = text[:page[0]] + title
	}
	return SingleLine(userinfo().ReplaceAllString(text, "${1}"), limit)
}

// IsPage reports whether a text of a server is a web page or an XML document.
func IsPage(text string) bool {
	page := markup().FindStringIndex(text)
	return page != nil && page[0] == 0
}
