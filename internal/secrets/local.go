package secrets

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
)

// maxSecret is the maximum size of a secret in bytes.
const maxSecret = 64 << 10

// newEnvironment reads variables of the environment.
func newEnvironment(m *spec.EnvSecretManager, opts Options) (source, error) {
	return source{local: true, read: func(_ context.Context, name string) (string, error) {
		if err := opts.Policy.Env(m.Prefix + name); err != nil {
			return "", err
		}
		if text := opts.Getenv(m.Prefix + name); text != "" {
			return text, nil
		}
		return "", fmt.Errorf("the environment variable %s is not set", m.Prefix+name)
	}}, nil
}

// newFiles reads the files of a folder.
func newFiles(m *spec.FileSecretManager, opts Options) (source, error) {
	return source{local: true, read: func(_ context.Context, name string) (string, error) {
		if err := opts.Policy.Read(filepath.Join(m.Directory, name)); err != nil {
			return "", err
		}
		return readFile(m.Directory, name)
	}}, nil
}

// readFile reads a secret's file, without line ends at the end, which editors add.
func readFile(directory, name string) (string, error) {
	path := filepath.Join(directory, name)
	if !filepath.IsLocal(name) {
		return "", fmt.Errorf("the name must be that of a file in %s", directory)
	}
	file, err := os.OpenInRoot(directory, name)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, textfmt.WithoutPath(err))
	}
	defer func() { _ = file.Close() }() // only read
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", path)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxSecret+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("%s: %w", path, textfmt.WithoutPath(err))
	case len(text) > maxSecret:
		return "", fmt.Errorf("%s is larger than %d bytes", path, maxSecret)
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}
