package trust

import (
	"os"
	"path/filepath"
)

// StateFolder returns the folder of the user for what this program remembers; empty if
// there is none.
func StateFolder() string {
	home, _ := os.UserHomeDir()
	state := os.Getenv("XDG_STATE_HOME")
	switch {
	case os.Getenv("QTYPE_HOME") != "":
		return os.Getenv("QTYPE_HOME")
	case filepath.IsAbs(state):
		return filepath.Join(state, "qtype")
	case home == "":
		return ""
	}
	return filepath.Join(home, ".local", "state", "qtype")
}
