package state

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/terminal"
)

// confirmation is the rule of commands that delete what cannot be made again: they prompt on
// a terminal, and need --yes without one.
type confirmation struct {
	*cli.Streams
	yes bool
}

func (c *confirmation) addTo(f *pflag.FlagSet) {
	f.BoolVarP(&c.yes, "yes", "y", false, "do not ask for confirmation")
}

// ask returns nil if what, which the command removes, may be removed.
func (c *confirmation) ask(command, what string) error {
	switch {
	case c.yes:
		return nil
	case !c.InTerminal:
		return terminal.Usagef("%s removes %s: pass --yes to confirm", command, what)
	}
	fmt.Fprintf(c.Err, "remove %s? [y/N] ", what)
	var answer string
	if _, err := fmt.Fscanln(c.In, &answer); err != nil || !strings.HasPrefix(strings.ToLower(answer), "y") {
		return errors.New("nothing was removed")
	}
	return nil
}
