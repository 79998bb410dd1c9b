package runtime

import (
	"fmt"

	"github.com/qtype-dev/qtype/internal/secrets"
	"github.com/qtype-dev/qtype/spec"
)

// secret returns the text of a secret, from the document, the environment or the
// application's secret manager. Its errors never include the text.
func (a *App) secret(s spec.Secret) (text string, err error) {
	if s.Ref == nil {
		return s.Reveal(), nil
	}
	declared := a.spec.SecretManager
	if declared == nil {
		return "", fmt.Errorf("secret %s needs a secret_manager", s.Ref.SecretName)
	}
	m := &a.secretManager
	m.once.Do(func() {
		m.reader, m.err = secrets.New(declared, secrets.Options{Getenv: a.Getenv, Policy: a.opts.Policy})
	})
	if m.err != nil {
		return "", m.err
	}
	text, err = m.reader.Read(a.background(), *s.Ref) // a read has a time limit
	a.opts.Redactor.Add(text)
	return text, err
}

// Secret returns the text of a secret of the document. Its errors never include the
// text.
func (a *App) Secret(s spec.Secret) (string, error) { return a.secret(s) }

// Getenv returns a variable of the environment that the document sees.
func (a *App) Getenv(name string) string { return a.opts.Policy.Getenv(a.opts.DocumentEnv)(name) }
