package subprocess

import (
	"maps"
	"slices"
)

// inherited lists what a program is given of our environment: where programs,
// the home, temporary files and certificates are, and how a person reads. None
// of it is a secret; everything else a document names itself.
func inherited() []string {
	return []string{
		"PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "LC_NUMERIC", "LC_TIME", "TZ",
		"TMPDIR", "TMP", "TEMP", "SSL_CERT_FILE", "SSL_CERT_DIR", "NO_COLOR",
		"SYSTEMROOT", "SYSTEMDRIVE", "COMSPEC", "PATHEXT", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", // Windows
	}
}

// Environment is what a program sees: a fixed few of the variables that lookup
// knows, those that also names, and over them the given ones. The result is
// sorted, so the same in makes the same out.
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
