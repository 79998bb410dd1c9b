package server_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/server"
	"github.com/qtype-dev/qtype/internal/storage/storagetest"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// TestReady_DiskFull checks that a server is not ready while its store cannot be written.
func TestReady_DiskFull(t *testing.T) {
	folder, _ := storagetest.SmallDisk(t, 1<<20)
	app, err := qtype.Open(t.Context(), "testdata/app.qtype.yaml", qtype.WithDefaultStore("sqlite:"+filepath.Join(folder, "memory.db")))
	testkit.Must(t, err)
	t.Cleanup(func() { _ = app.Close(context.Background()) })
	s := serveApp(t, app, server.Options{})
	s.post("/flows/talk", `{"message": "Hello"}`, "X-Session-Id", "s") // creates the file
	filler := filepath.Join(folder, "filler")
	fill(t, filler)
	if got := s.do("GET", "/readyz", ""); got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, "store_unavailable") {
		t.Errorf("with a full disk: %+v", got)
	}
	testkit.Must(t, os.Remove(filler))
	if got := s.do("GET", "/readyz", ""); got.status != http.StatusOK {
		t.Errorf("with space: %+v", got)
	}
}

// fill writes to a file until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	file, err := os.Create(path)
	testkit.Must(t, err)
	block := make([]byte, 4<<10)
	for err == nil {
		_, err = file.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	testkit.Must(t, file.Close())
}
