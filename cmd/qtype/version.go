package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/cli"
)

func newVersion(s *cli.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cli.Arguments(),
		RunE: func(*cobra.Command, []string) error {
			return s.WriteTo("", versionLine())
		},
	}
}

// versionLine is what qtype version and qtype --version print.
func versionLine() string {
	return fmt.Sprintf("qtype %s (%s, %s/%s)\n", cli.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
