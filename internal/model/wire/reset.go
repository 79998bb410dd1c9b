package wire

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/httpx"
)

// maxReset is the longest delay that is taken from a header of a rate limit.
const maxReset = 24 * time.Hour

// requestedDelay returns how long a server that rejected a call requests to wait: by
// Retry-After, else by the headers of its rate limits. It is 0 without a request.
func requestedDelay(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(strings.TrimSpace(h.Get("Retry-After-Ms")), 64); err == nil && ms > 0 && ms < float64(maxReset.Milliseconds()) {
		return time.Duration(ms * float64(time.Millisecond))
	}
	if after := httpx.RetryAfter(h, now); after > 0 {
		return after
	}
	return resetDelay(h, now)
}

// resetDelay returns how long to wait until a rate limit whose remaining calls or tokens
// are used up begins again: the longest of all limits. It reads the headers of OpenAI and
// compatible servers, of Anthropic, and of the draft of the IETF.
func resetDelay(h http.Header, now time.Time) time.Duration {
	var longest time.Duration
	for _, names := range [][2]string{
		{"X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests"}, {"X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens"},
		{"X-Ratelimit-Remaining", "X-Ratelimit-Reset"}, {"Ratelimit-Remaining", "Ratelimit-Reset"},
		{"Anthropic-Ratelimit-Requests-Remaining", "Anthropic-Ratelimit-Requests-Reset"},
		{"Anthropic-Ratelimit-Tokens-Remaining", "Anthropic-Ratelimit-Tokens-Reset"},
		{"Anthropic-Ratelimit-Input-Tokens-Remaining", "Anthropic-Ratelimit-Input-Tokens-Reset"},
		{"Anthropic-Ratelimit-Output-Tokens-Remaining", "Anthropic-Ratelimit-Output-Tokens-Reset"},
	} {
		if strings.TrimSpace(h.Get(names[0])) == "0" {
			longest = max(longest, untilReset(strings.TrimSpace(h.Get(names[1])), now))
		}
	}
	return longest
}

// untilReset reads the time of a reset: a duration (6m0s), a time (RFC 3339), or a number
// of seconds, either from now or as Unix time, which some servers send in milliseconds.
func untilReset(text string, now time.Time) time.Duration {
	var wait time.Duration
	if d, err := time.ParseDuration(text); err == nil {
		wait = d
	} else if at, err := time.Parse(time.RFC3339, text); err == nil {
		wait = at.Sub(now)
	} else if n, err := strconv.ParseFloat(text, 64); err == nil {
		const unix, unixMilli = 1e9, 1e12
		switch {
		case n >= unixMilli:
			wait = time.UnixMilli(int64(n)).Sub(now)
		case n >= unix:
			wait = time.Unix(int64(n), 0).Sub(now)
		case n < maxReset.Seconds():
			wait = time.Duration(n * float64(time.Second))
		}
	}
	if wait < 0 || wait > maxReset {
		return 0
	}
	return wait
}
