package server

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/appstate"
	"github.com/qtype-dev/qtype/memory/store"
)

const (
	probePeriod = 5 * time.Second // for which a store that was written is taken for writable: anyone may call /readyz
	probeBytes  = 8 << 10         // more than a full disk has left in its last page
)

// storeProbe finds out whether the store can be written. It is safe for concurrent use.
type storeProbe struct {
	mu      sync.Mutex
	written time.Time // when the store was written last
}

// check writes a record, unless one was written a moment ago. A server that writes it at the
// same moment has found out the same.
func (p *storeProbe) check(ctx context.Context, app store.Application) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.written.IsZero() && time.Since(p.written) < probePeriod {
		return nil
	}
	records := app.Records(appstate.Probe)
	rec, err := records.Get(ctx, probeID)
	if err != nil {
		return err
	}
	value := make([]byte, probeBytes)
	_, _ = rand.Read(value) // never fails
	err = records.Write(ctx, probeID, store.RecordChange{Version: rec.Version, Next: store.NextVersion(rec.Version), Values: map[string][]byte{probeID: value}})
	if err != nil && !errors.Is(err, store.ErrConflict) {
		return err
	}
	p.written = time.Now()
	return nil
}

// probeID is the id of the record, and the name of its value.
const probeID = "probe"
