package batch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/qtype-dev/qtype/internal/records"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/terminal"
)

// Check rejects a configuration whose parts exclude each other, and files that cannot be written. The
// errors name the flags of qtype run; isSet reports whether one is set.
func (c *Config) Check(isSet func(flag string) bool) error {
	switch {
	case c.Input != "" && c.InputFile != "":
		return terminal.Usagef("-i and -I exclude each other")
	case c.InputFile == "-" && c.Streams.InTerminal:
		return terminal.Usagef("-I - reads rows from standard input, which is a terminal: pipe a file into it")
	}
	if err := c.checkSessions(isSet); err != nil {
		return err
	}
	if err := c.checkLimits(isSet); err != nil {
		return err
	}
	if err := c.checkFile("-o", c.Output); err != nil {
		return err
	}
	if err := c.checkFile("--errors", c.ErrorFile); err != nil {
		return err
	}
	return c.checkDistinctFiles()
}

// checkSessions rejects sessions and users that exclude each other or are empty.
func (c *Config) checkSessions(isSet func(string) bool) error {
	switch {
	case c.Session != "" && c.SessionColumn != "":
		return terminal.Usagef("--session and --session-column exclude each other")
	case c.SessionPerRow && (c.Session != "" || c.SessionColumn != ""):
		return terminal.Usagef("--session-per-row excludes --session and --session-column")
	case c.User != "" && c.UserColumn != "":
		return terminal.Usagef("--user and --user-column exclude each other")
	}
	for _, f := range []struct{ name, value string }{{"session", c.Session}, {"session-column", c.SessionColumn}, {"user", c.User}, {"user-column", c.UserColumn}} {
		if isSet(f.name) && strings.TrimSpace(f.value) == "" {
			return terminal.Usagef("--%s must not be empty", f.name)
		}
	}
	return nil
}

// checkLimits rejects settings of long runs that exclude each other or have no effect.
func (c *Config) checkLimits(isSet func(string) bool) error {
	switch {
	case c.Limit < 0, isSet("limit") && c.Limit == 0:
		return terminal.Usagef("--limit cannot be %d: expected a positive number of rows", c.Limit)
	case c.Offset < 0:
		return terminal.Usagef("--offset cannot be %d: expected a number of rows", c.Offset)
	case c.MaxFailures < 0, isSet("max-failures") && c.MaxFailures == 0:
		return terminal.Usagef("--max-failures cannot be %d: expected a positive number of rows", c.MaxFailures)
	case c.FailFast && c.MaxFailures > 0:
		return terminal.Usagef("--fail-fast and --max-failures exclude each other")
	case c.Resume && c.Restart:
		return terminal.Usagef("--resume and --restart exclude each other")
	case c.RetryFailed && !c.Resume:
		return terminal.Usagef("--retry-failed requires --resume")
	case (c.Resume || c.Restart) && (c.InputFile == "" || c.Output == ""):
		return terminal.Usagef("--resume and --restart require -I and -o: only a run from file to file can be resumed")
	}
	return nil
}

// checkFile rejects an output that cannot be written, also one in a folder that does not exist, which a
// typing error would otherwise create.
func (c *Config) checkFile(flag, path string) error {
	if path == "" {
		return nil
	}
	if isParquet := path == c.Output && filepath.Ext(path) == ""; !isParquet {
		if err := records.Writable(path); err != nil {
			return terminal.Usagef("%s", err)
		}
	}
	if _, remote := remotefs.Remote(path); remote || c.MakeFolders {
		return nil
	}
	folder := filepath.Dir(remotefs.Path(path))
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return terminal.Usagef("%s %s: there is no folder %s: create it, or pass --mkdir", flag, path, folder)
	}
	return nil
}

// checkDistinctFiles rejects a run that would overwrite its own input, or one of its outputs with another.
func (c *Config) checkDistinctFiles() error {
	switch {
	case remotefs.IsSame(c.InputFile, c.Output):
		return terminal.Usagef("-o %s is the file of -I: use another name", c.Output)
	case remotefs.IsSame(c.InputFile, c.ErrorFile):
		return terminal.Usagef("--errors %s is the file of -I: use another name", c.ErrorFile)
	case remotefs.IsSame(c.Output, c.ErrorFile):
		return terminal.Usagef("--errors %s is the file of -o: use another name", c.ErrorFile)
	}
	return nil
}
