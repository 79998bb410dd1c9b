package runtime

import (
	"slices"
	"sync"

	"github.com/qtype-dev/qtype/spec"
)

// knownSecrets are the texts that were used as secrets.
type knownSecrets struct {
	mu    sync.Mutex
	texts map[string]bool
}

func (k *knownSecrets) add(text string) {
	if text == "" {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.texts == nil {
		k.texts = map[string]bool{}
	}
	k.texts[text] = true
}

// Secrets returns the texts that the application has used as secrets so far, and those of
// EnvironmentSecrets, so that a caller can remove them from what it shows. The longest
// come first.
func (a *App) Secrets() []string {
	all := EnvironmentSecrets(a.opts.Getenv)
	a.known.mu.Lock()
	for text := range a.known.texts {
		all = append(all, text)
	}
	a.known.mu.Unlock()
	sortSecrets(all)
	return all
}

// EnvironmentSecrets returns the values of the environment variables in which providers
// find credentials. The longest come first.
func EnvironmentSecrets(getenv func(string) string) []string {
	names := []string{"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"}
	for _, p := range spec.Providers() {
		names = append(names, p.KeyEnv...)
	}
	var all []string
	for _, name := range names {
		if text := getenv(name); text != "" {
			all = append(all, text)
		}
	}
	sortSecrets(all)
	return all
}

// sortSecrets sorts longer texts first: one may contain another.
func sortSecrets(all []string) {
	slices.SortFunc(all, func(x, y string) int { return len(y) - len(x) })
}
