package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Version returns the module's version that the build recorded, or the commit.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "devel-" + s.Value[:12]
		}
	}
	return "devel"
}

// NewVersion returns a func that makes the command version of a program.
func NewVersion(program string) func(*Streams) *cobra.Command {
	return func(s *Streams) *cobra.Command {
		return &cobra.Command{
			Use:   "version",
			Short: "Print the version",
			Args:  Arguments(),
			RunE:  func(*cobra.Command, []string) error { return s.WriteTo("", versionLine(program)) },
		}
	}
}

// versionLine is what the command version and the flag --version print.
func versionLine(program string) string {
	return fmt.Sprintf("%s %s (%s, %s/%s)\n", program, Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
