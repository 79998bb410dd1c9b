//go:build unix

package tooltest

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Begun is what a process writes to the path of KilledWith once it runs.
const Begun = "begun"

// KilledWith checks that a canceled call kills its process and all child processes.
// call starts a process that opens path, writes Begun and sleeps, and returns the
// error of the call.
func KilledWith(t *testing.T, call func(ctx context.Context, path string) error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "alive") // open as long as a process of the call lives
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	stop := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() {
		alive, err := os.Open(path)
		if err != nil {
			ended <- err
			return
		}
		defer func() { _ = alive.Close() }() // it was only read
		_, begun := io.ReadFull(alive, make([]byte, len(Begun)))
		cancel(stop)
		_, err = io.Copy(io.Discard, alive)
		ended <- errors.Join(begun, err)
	}()
	if err := call(ctx, path); !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
	if w, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil { // ends the reader if no process opened the path
		_ = w.Close()
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
