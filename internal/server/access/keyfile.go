package access

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxKeyFile  = 4 << 20     // bytes
	checkEvery  = time.Second // between checks whether a file changed
	openToOther = 0o026       // permissions that a key file must not have
)

// keySource has the API keys of the server: those of the environment, and those of a
// file that may change. It is safe for concurrent use.
type keySource struct {
	fixed   keyring // from the environment
	file    watchedFile
	current atomic.Pointer[keyring]
	logger  *slog.Logger
}

// newKeySource reads the keys. A nil source means that there are none.
func newKeySource(cfg Config, logger *slog.Logger) (*keySource, error) {
	fixed, err := parseKeys(cfg.Keys)
	if err != nil {
		return nil, err
	}
	if len(fixed) == 0 && cfg.KeyFile == "" {
		return nil, nil
	}
	s := &keySource{fixed: fixed, file: watchedFile{path: cfg.KeyFile}, logger: logger}
	s.current.Store(&s.fixed)
	if cfg.KeyFile == "" {
		return s, nil
	}
	s.file.changed()
	return s, s.load()
}

// load reads the key file.
func (s *keySource) load() error {
	text, err := readPrivate(s.file.path)
	if err != nil {
		return fmt.Errorf("the file of API keys: %w", err)
	}
	keys, err := parseKeyFile(text)
	if err != nil {
		return fmt.Errorf("the file of API keys %s: %w", s.file.path, err)
	}
	all := append(keyring(nil), s.fixed...)
	for _, k := range keys {
		if all, err = all.add(k); err != nil {
			return fmt.Errorf("the file of API keys %s: %w", s.file.path, err)
		}
	}
	s.current.Store(&all)
	return nil
}

// find returns the name of a key. If the file changed, it is read before; an invalid
// file is logged, and the previous keys stay valid.
func (s *keySource) find(key string) (name string, ok bool) {
	if s.file.path != "" && s.file.changed() {
		if err := s.load(); err != nil {
			s.logger.Error("API keys not reloaded, the previous ones stay valid", "error", err.Error())
		} else {
			s.logger.Info("API keys reloaded", "keys", len(*s.current.Load()))
		}
	}
	return s.current.Load().find(key)
}

// readPrivate reads a file that other users can neither read nor change.
func readPrivate(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if info.IsDir() {
		return "", &fs.PathError{Op: "read", Path: path, Err: errors.New("is a folder")}
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&openToOther != 0 {
		return "", fmt.Errorf("%s has the permissions %o; remove those of other users: chmod 600 %s", path, info.Mode().Perm(), path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err == nil && len(text) > maxKeyFile {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxKeyFile)
	}
	return string(text), err
}

// watchedFile notices changes of a file without a goroutine: by its size, time and
// identity, at most once a second.
type watchedFile struct {
	path string

	mu   sync.Mutex
	next time.Time   // of the next check
	last os.FileInfo // nil if the file was missing
}

// changed reports whether the file differs from that of the last call. The check is
// left out if the last one was less than a second ago.
func (w *watchedFile) changed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if now.Before(w.next) {
		return false
	}
	w.next = now.Add(checkEvery)
	info, err := os.Stat(w.path)
	if err != nil {
		info = nil
	}
	last := w.last
	w.last = info
	if info == nil || last == nil {
		return (info == nil) != (last == nil)
	}
	return !os.SameFile(info, last) || !info.ModTime().Equal(last.ModTime()) || info.Size() != last.Size() || info.Mode() != last.Mode()
}
