// Command extension is qtype with the parts of this module.
package main

import (
	"os"

	"github.com/qtype-dev/qtype/command"

	"example.org/extension/journal"
)

func main() {
	os.Exit(command.Main(journal.Part()))
}
