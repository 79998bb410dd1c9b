package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/spec"
)

// maxSecret is the maximum size of a secret's file in bytes.
const maxSecret = 64 << 10

// secret returns the text of a secret, from the document, the environment or the
// application's secret manager. Its errors never include the text.
func (a *App) secret(s spec.Secret) (string, error) {
	if s.Ref == nil {
		return s.Reveal(), nil
	}
	text, err := a.fromSecretManager(s.Ref.SecretName)
	if err != nil {
		return "", err
	}
	if s.Ref.Key == "" {
		return text, nil
	}
	return jsonField(text, s.Ref)
}

// secretReader reads secrets with one type of secret manager.
type secretReader func(a *App, m spec.SecretManager, name string) (string, error)

// secretReaders is the table of the types of secret managers that are supported.
var secretReaders = sync.OnceValue(func() map[reflect.Type]secretReader {
	table := map[reflect.Type]secretReader{}
	addSecretReader(table, func(a *App, m *spec.EnvSecretManager, name string) (string, error) {
		if text := a.opts.Getenv(m.Prefix + name); text != "" {
			return text, nil
		}
		return "", fmt.Errorf("secret %s: the environment variable %s is not set", name, m.Prefix+name)
	})
	addSecretReader(table, func(_ *App, m *spec.FileSecretManager, name string) (string, error) {
		return readSecret(m.Directory, name)
	})
	return table
})

func addSecretReader[M spec.SecretManager](table map[reflect.Type]secretReader, read func(*App, M, string) (string, error)) {
	table[reflect.TypeFor[M]()] = func(a *App, m spec.SecretManager, name string) (string, error) { return read(a, m.(M), name) }
}

// fromSecretManager reads a secret with the application's secret manager.
func (a *App) fromSecretManager(name string) (string, error) {
	m := a.spec.SecretManager
	if m == nil {
		return "", fmt.Errorf("secret %s needs a secret_manager", name)
	}
	if read, ok := secretReaders()[reflect.TypeOf(m)]; ok {
		return read(a, m, name)
	}
	err := &spec.NotAvailableError{Owner: "secret manager " + m.EntityID(), Key: "type", What: "type " + spec.TypeName(m)}
	return "", err.At(m)
}

// readSecret reads a secret's file, without line ends at the end, which editors add.
func readSecret(directory, name string) (string, error) {
	path := filepath.Join(directory, name)
	if !filepath.IsLocal(name) {
		return "", fmt.Errorf("secret %s: the name must be that of a file in %s", name, directory)
	}
	file, err := os.OpenInRoot(directory, name)
	if err != nil {
		return "", fmt.Errorf("secret %s: %s: %w", name, path, withoutPath(err))
	}
	defer func() { _ = file.Close() }() // only read
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", fmt.Errorf("secret %s: %s is not a regular file", name, path)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxSecret+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("secret %s: %s: %w", name, path, withoutPath(err))
	case len(text) > maxSecret:
		return "", fmt.Errorf("secret %s: %s is larger than %d bytes", name, path, maxSecret)
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}

// withoutPath returns an error of the file system without the path, for messages that
// have it.
func withoutPath(err error) error {
	var of *fs.PathError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// jsonField returns one text of a secret that is a JSON object.
func jsonField(text string, ref *spec.SecretReference) (string, error) {
	var object map[string]any
	if json.Unmarshal([]byte(text), &object) != nil {
		return "", fmt.Errorf("secret %s is not a JSON object, so it has no key %s", ref.SecretName, ref.Key)
	}
	switch v := object[ref.Key].(type) {
	case string:
		return v, nil
	case nil:
		return "", fmt.Errorf("secret %s has no key %s", ref.SecretName, ref.Key)
	}
	return "", fmt.Errorf("key %s of secret %s is not a string", ref.Key, ref.SecretName)
}

// Secret returns the text of a secret of the document. Its errors never include the
// text.
func (a *App) Secret(s spec.Secret) (string, error) { return a.secret(s) }

// Getenv returns a variable of the environment that the document sees.
func (a *App) Getenv(name string) string { return a.opts.Getenv(name) }
