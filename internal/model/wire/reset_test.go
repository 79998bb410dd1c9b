package wire

import (
	"net/http"
	"testing"
	"time"
)

func TestRequestedDelay(t *testing.T) {
	now := time.Date(2025, 3, 4, 5, 6, 7, 0, time.UTC)
	for name, tt := range map[string]struct {
		header []string
		want   time.Duration
	}{
		"none":             {nil, 0},
		"seconds":          {[]string{"Retry-After", "7", "x-ratelimit-remaining-requests", "0", "x-ratelimit-reset-requests", "6m0s"}, 7 * time.Second},
		"milliseconds":     {[]string{"retry-after-ms", "250", "Retry-After", "1"}, 250 * time.Millisecond},
		"OpenAI":           {[]string{"x-ratelimit-remaining-requests", "0", "x-ratelimit-reset-requests", "6m0.5s"}, 6*time.Minute + 500*time.Millisecond},
		"OpenAI, tokens":   {[]string{"x-ratelimit-remaining-tokens", "0", "x-ratelimit-reset-tokens", "120ms"}, 120 * time.Millisecond},
		"some remain":      {[]string{"x-ratelimit-remaining-requests", "3", "x-ratelimit-reset-requests", "6m0s"}, 0},
		"the longest":      {[]string{"x-ratelimit-remaining-requests", "0", "x-ratelimit-reset-requests", "1s", "x-ratelimit-remaining-tokens", "0", "x-ratelimit-reset-tokens", "2s"}, 2 * time.Second},
		"Anthropic":        {[]string{"anthropic-ratelimit-requests-remaining", "0", "anthropic-ratelimit-requests-reset", "2025-03-04T05:06:37Z"}, 30 * time.Second},
		"Anthropic, input": {[]string{"anthropic-ratelimit-input-tokens-remaining", "0", "anthropic-ratelimit-input-tokens-reset", "2025-03-04T05:06:17Z"}, 10 * time.Second},
		"draft":            {[]string{"RateLimit-Remaining", "0", "RateLimit-Reset", "12"}, 12 * time.Second},
		"Unix time":        {[]string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1741064777"}, 10 * time.Second},
		"Unix time in ms":  {[]string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1741064768000"}, time.Second},
		"past":             {[]string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "2025-03-04T05:06:00Z"}, 0},
		"malformed":        {[]string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "soon"}, 0},
		"far":              {[]string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "900h"}, 0},
	} {
		h := http.Header{}
		for i := 0; i < len(tt.header); i += 2 {
			h.Set(tt.header[i], tt.header[i+1])
		}
		if got := requestedDelay(h, now); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}
