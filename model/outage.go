package model

import (
	"context"
	"errors"
	"iter"
	"net"
	"net/http"
	"slices"

	"github.com/qtype-dev/qtype/internal/timer"
)

// Patient makes calls of m wait for a server that is away, if the run permits it: timer.WithOutages. It goes around
// the fallbacks of m.
func Patient(m Chat) Chat {
	if m == nil || m.Info().Mock {
		return m
	}
	return &patientChat{m}
}

type patientChat struct{ Chat }

// Generate repeats the call while the server is away. After the first event it does not.
func (p *patientChat) Generate(ctx context.Context, req Request) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		begun := false
		err := timer.Outlast(ctx, serverOf(p.Info()), func(err error) bool { return !begun && isAway(err) }, func() error {
			for ev, err := range p.Chat.Generate(ctx, req) {
				if err != nil {
					return err
				}
				begun = true
				if !yield(ev, nil) {
					return nil
				}
			}
			return nil
		})
		if err != nil {
			yield(Event{}, err)
		}
	}
}

// PatientEmbedder is Patient for embedding models.
func PatientEmbedder(m Embedder) Embedder {
	if m == nil || m.Info().Mock {
		return m
	}
	return &patientEmbedder{m}
}

type patientEmbedder struct{ Embedder }

// Embed repeats the call while the server is away.
func (p *patientEmbedder) Embed(ctx context.Context, texts []string) (vectors [][]float32, used Usage, err error) {
	err = timer.Outlast(ctx, serverOf(p.Info()), isAway, func() error {
		got, usage, err := p.Embedder.Embed(ctx, texts)
		used.Add(usage)
		vectors = got
		return err
	})
	return vectors, used, err
}

func serverOf(m Info) string { return "model " + m.ID }

// isAway reports whether an error shows that the server of a model, or of one of its fallbacks, is away: there is no
// connection, or a proxy has none. An answer that takes too long, or an error of the server itself, may be due to the
// request.
func isAway(err error) bool {
	if all, ok := errors.AsType[*FallbackError](err); ok {
		return slices.ContainsFunc(all.Errors, isAway)
	}
	failure, ok := errors.AsType[*Error](err)
	switch {
	case !ok || !failure.Temporary:
		return false
	case failure.Status == 0:
		return failure.Code == CircuitOpen || failure.Err != nil && !isSlow(failure.Err) && !isUnknownHost(failure.Err)
	}
	const overloaded, webServerDown, unreachable = 529, 521, 523 // of Anthropic and Cloudflare
	return slices.Contains([]int{http.StatusBadGateway, http.StatusServiceUnavailable, overloaded, webServerDown, unreachable}, failure.Status)
}

// isUnknownHost reports whether the name of a server does not exist: it is a wrong one, which waiting does not mend.
func isUnknownHost(err error) bool {
	unknown, ok := errors.AsType[*net.DNSError](err)
	return ok && unknown.IsNotFound
}

// isSlow reports whether a connection was made, and the answer took too long.
func isSlow(err error) bool {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return false
	}
	var slow interface{ Timeout() bool }
	return errors.As(err, &slow) && slow.Timeout()
}
