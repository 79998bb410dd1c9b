package temporal

import (
	"context"
	"errors"
	"io/fs"
)

// callLog stores the result of each call of a model or a tool before the row goes on, so that
// the row can be repeated by another worker without repeating the call. It is a steps.CallLog.
type callLog struct {
	ctx     context.Context // of the chunk
	blobs   *blobs
	folder  string      // of the results
	repeats bool        // an earlier attempt may have stored results
	fail    func(error) // ends the chunk, which Temporal repeats
}

// Recorded returns the result of a call of an earlier attempt, nil if there is none. If it
// cannot be read, the chunk ends, because the call may have been made.
func (l *callLog) Recorded(key string) []byte {
	if !l.repeats {
		return nil
	}
	var result []byte
	err := l.blobs.read(l.ctx, l.folder+"/"+key, &result)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.fail(err)
		return nil
	}
	return result
}

// Record stores the result of a call, also if the chunk was just canceled. If it cannot be stored,
// the chunk ends: an agent would pass the error to its model, and go on.
func (l *callLog) Record(ctx context.Context, key string, result []byte) error {
	err := l.blobs.write(context.WithoutCancel(ctx), l.folder+"/"+key, result)
	if err != nil {
		l.fail(err)
	}
	return err
}
