// Command extension is qtype with the parts of this module.
package main

import (
	"os"

	"github.com/qtype-dev/qtype/command"

	"example.org/extension/dice"
	"example.org/extension/journal"
	"example.org/extension/plain"
	"example.org/extension/vote"
)

func main() { os.Exit(command.Main(dice.Part(), journal.Part(), plain.Part(), vote.Part())) }
