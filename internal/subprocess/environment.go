package subprocess

import (
	"maps"
	"slices"
)

// inherited returns the variables that a program gets from our environment: paths,
// home, temporary directories, certificates and locale. None is a secret. A
// document declares all others.
func inherited() []string {
	return []string{
		"PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "LC_NUMERIC", "LC_TIME", "TZ",
		"TMPDIR", "TMP", "TEMP", "SSL_CERT_FILE", "SSL_CERT_DIR", "NO_COLOR",
		"SYSTEMROOT", "SYSTEMDRIVE", "COMSPEC", "PATHEXT", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", // Windows
	}
}

// Environment returns the environment of a program, sorted: the inherited variables
// and those named by also, both by lookup, and the given ones, which take precedence.
func Environment(lookup func(string) string, given map[string]string, also ...string) []string {
	vars := map[string]string{}
	for _, name := range append(inherited(), also...) {
		if text := lookup(name); text != "" {
			vars[name] = text
		}
	}
	maps.Copy(vars, given)
	env := make([]string, 0, len(vars))
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		env = append(env, name+"="+vars[name])
	}
	return env
}
