package main
import ("github.com/spf13/cobra"; "errors")
var errInterrupted = errors.New("interrupted")
func newRun(s *streams) *cobra.Command { return &cobra.Command{Use: "run"} }
