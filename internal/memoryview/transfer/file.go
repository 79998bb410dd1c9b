// Package transfer moves stored conversations: to files and from files, to other stores, and to
// other keys of the same store.
package transfer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/qtype-dev/qtype/internal/memoryview"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory/transcript"
)

// Export writes everything of sessions as JSON lines that Import reads.
func Export(ctx context.Context, m memoryview.Memory, w io.Writer, sessions ...string) error {
	out := bufio.NewWriter(w)
	for _, session := range sessions {
		if err := transcript.ExportSession(ctx, m.Memory, session, out); err != nil {
			return errors.Join(err, out.Flush())
		}
	}
	return out.Flush()
}

// ExportAll is Export for all sessions of a memory.
func ExportAll(ctx context.Context, m memoryview.Memory, w io.Writer) error {
	sessions, err := m.Sessions(ctx)
	if err != nil {
		return err
	}
	ids := make([]string, len(sessions))
	for i := range sessions {
		ids[i] = sessions[i].Session
	}
	return Export(ctx, m, w, ids...)
}

// File is a file with conversations.
type File struct {
	transcript.Options
	In   io.Reader
	Name string // for messages
}

// Import makes sessions of a file and writes a line for each.
func Import(ctx context.Context, m memoryview.Memory, f File, out io.Writer) error {
	made, existed := 0, 0
	var failed error
	err := transcript.ImportAll(ctx, m.Memory, f.In, f.Options, func(one transcript.Imported) {
		if one.Existed {
			existed++
			return
		}
		made++
		info, err := m.Info(ctx, one.Session)
		if err == nil {
			_, err = fmt.Fprintf(out, "memory %s: session %s has %s\n", m.ID, terminal.Clean(one.Session), textfmt.Count(info.Messages, "message"))
		}
		failed = errors.Join(failed, err)
	})
	if existed > 0 {
		_, wrong := fmt.Fprintf(out, "memory %s: %s existed already\n", m.ID, textfmt.Count(existed, "session"))
		failed = errors.Join(failed, wrong)
	}
	if err == nil {
		return failed
	}
	if line, ok := errors.AsType[*transcript.LineError](err); ok {
		err = fmt.Errorf("%s:%d: %w", f.Name, line.Line, line.Err)
	}
	if made > 0 {
		err = fmt.Errorf("%w (%s before it stored; --skip-existing continues)", err, textfmt.Count(made, "session"))
	}
	return err
}
