package access

import (
	"log/slog"
	"net/http"
	"sync/atomic"

	"golang.org/x/time/rate"

	"github.com/qtype-dev/qtype/internal/server/problem"
)

const (
	auditPerSecond = 50 // lines
	auditBurst     = 200
	maxLoggedPath  = 200 // bytes
)

// audit logs refused requests: who, what and why, without credentials, queries and
// bodies. The number of lines a second is limited, so that refused requests cannot fill
// a disk; the next line has the number of those left out.
type audit struct {
	logger  *slog.Logger
	lines   *rate.Limiter
	skipped atomic.Int64
}

func newAudit(logger *slog.Logger) *audit {
	return &audit{logger: logger, lines: rate.NewLimiter(auditPerSecond, auditBurst)}
}

// refused logs a refused request. reason is one of a fixed set of texts.
func (a *audit) refused(r *http.Request, address, principal, reason string, p *problem.Problem) {
	if !a.lines.Allow() {
		a.skipped.Add(1)
		return
	}
	path := r.URL.Path
	if len(path) > maxLoggedPath {
		path = path[:maxLoggedPath]
	}
	attrs := []slog.Attr{slog.Int("status", p.Status), slog.String("code", p.Code), slog.String("reason", reason),
		slog.String("method", r.Method), slog.String("path", path), slog.String("address", address)}
	if principal != "" {
		attrs = append(attrs, slog.String("principal", principal))
	}
	if n := a.skipped.Swap(0); n > 0 {
		attrs = append(attrs, slog.Int64("skipped", n))
	}
	a.logger.LogAttrs(r.Context(), slog.LevelWarn, "request refused", attrs...)
}
