package batch

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/qtype-dev/qtype/internal/records"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/terminal"
)

// Check rejects a configuration whose parts exclude each other, and files that cannot be written. The
// errors name the flags of qtype run; isSet reports whether one is set.
func (cfg *Config) Check(ctx context.Context, isSet func(flag string) bool) error {
	switch {
	case cfg.Input != "" && cfg.InputFile != "":
		return terminal.Usagef("-i and -I exclude each other")
	case cfg.InputFile == "-" && cfg.Streams.InTerminal:
		return terminal.Usagef("-I - reads rows from standard input, which is a terminal: pipe a file into it")
	}
	if err := cfg.checkSessions(); err != nil {
		return err
	}
	if err := cfg.checkLimits(isSet); err != nil {
		return err
	}
	if err := errors.Join(cfg.checkBatches(), cfg.checkOnEnd()); err != nil {
		return err
	}
	if err := cfg.checkFile("-o", cfg.Output); err != nil {
		return err
	}
	if err := cfg.checkFile("--errors", cfg.ErrorFile); err != nil {
		return err
	}
	if err := cfg.checkFormats(ctx); err != nil {
		return err
	}
	return cfg.checkDistinctFiles()
}

// checkSessions rejects sessions and users that exclude each other.
func (cfg *Config) checkSessions() error {
	switch {
	case cfg.Session != "" && cfg.SessionColumn != "":
		return terminal.Usagef("--session and --session-column exclude each other")
	case cfg.SessionPerRow && (cfg.Session != "" || cfg.SessionColumn != ""):
		return terminal.Usagef("--session-per-row excludes --session and --session-column")
	case cfg.User != "" && cfg.UserColumn != "":
		return terminal.Usagef("--user and --user-column exclude each other")
	}
	return nil
}

// checkLimits rejects settings of long runs that exclude each other or have no effect.
func (cfg *Config) checkLimits(isSet func(string) bool) error {
	switch {
	case cfg.Limit < 0, isSet("limit") && cfg.Limit == 0:
		return terminal.Usagef("--limit cannot be %d: expected a positive number of rows", cfg.Limit)
	case cfg.Offset < 0:
		return terminal.Usagef("--offset cannot be %d: expected a number of rows", cfg.Offset)
	case cfg.MaxFailures < 0, isSet("max-failures") && cfg.MaxFailures == 0:
		return terminal.Usagef("--max-failures cannot be %d: expected a positive number of rows", cfg.MaxFailures)
	case cfg.FailFast && cfg.MaxFailures > 0:
		return terminal.Usagef("--fail-fast and --max-failures exclude each other")
	case cfg.Outage < 0:
		return terminal.Usagef("--outage cannot be %s: expected a time such as 10m, or 0 to let rows fail", cfg.Outage)
	case cfg.Resume && cfg.Restart:
		return terminal.Usagef("--resume and --restart exclude each other")
	case cfg.RetryFailed && !cfg.Resume:
		return terminal.Usagef("--retry-failed requires --resume")
	case (cfg.Resume || cfg.Restart) && (cfg.InputFile == "" || cfg.Output == ""):
		return terminal.Usagef("--resume and --restart require -I and -o: only a run from file to file can be resumed")
	}
	return nil
}

// checkBatches rejects settings of batches that have no effect.
func (cfg *Config) checkBatches() error {
	switch {
	case cfg.Rebuy && (cfg.Waves == nil || !cfg.Resume):
		return terminal.Usagef("--rebuy requires --batch and --resume")
	case cfg.Waves == nil:
		return cfg.checkWithoutBatches()
	case cfg.Cancel && (cfg.Detach || cfg.Resume || cfg.Restart):
		return terminal.Usagef("--cancel excludes --detach, --resume and --restart")
	case cfg.InputFile == "" || cfg.Output == "":
		return terminal.Usagef("--batch requires -I and -o: the calls of many rows are sent together, and a run must be able to wait")
	case cfg.RetryFailed:
		return terminal.Usagef("--batch and --retry-failed exclude each other: write failed rows with --errors, and run them with -I")
	}
	return nil
}

func (cfg *Config) checkWithoutBatches() error {
	switch {
	case cfg.Detach || cfg.Cancel:
		return terminal.Usagef("--detach and --cancel require --batch")
	case cfg.ProgressJSON:
		return terminal.Usagef("--json-progress requires --batch")
	case cfg.Finish != Finish{}:
		return terminal.Usagef("--finish-after requires --batch")
	case cfg.Flex && cfg.InputFile == "":
		return terminal.Usagef("--batch=flex requires -I")
	}
	return nil
}

// checkFile rejects an output that cannot be written. A missing folder is an error, because it may be a
// typing error.
func (cfg *Config) checkFile(flag, path string) error {
	if path == "" {
		return nil
	}
	if isParquet := path == cfg.Output && filepath.Ext(path) == ""; !isParquet {
		if err := records.Writable(path); err != nil {
			return terminal.Usagef("%s", err)
		}
	}
	if _, remote := remotefs.Remote(path); remote || cfg.MakeFolders {
		return nil
	}
	folder := filepath.Dir(remotefs.Path(path))
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return terminal.Usagef("%s %s: there is no folder %s: create it, or pass --mkdir", flag, path, folder)
	}
	return nil
}

// checkFormats rejects files of formats that the program does not have.
func (cfg *Config) checkFormats(ctx context.Context) error {
	for _, f := range []struct{ flag, path string }{{"-I", cfg.InputFile}, {"-o", cfg.Output}, {"--errors", cfg.ErrorFile}} {
		format, named := records.FormatOf(f.path)
		isDefault := f.path != "" && f.path == cfg.Output && !named
		if isDefault {
			format = outputFormat(f.path)
		}
		if format == "" {
			continue
		}
		switch err := records.Available(ctx, format); {
		case err != nil && isDefault:
			return terminal.Usagef("-o %s has no suffix, so that it is a Parquet file, and %s; or give it a suffix, such as .csv or .jsonl", f.path, err)
		case err != nil:
			return terminal.Usagef("%s %s: %s", f.flag, f.path, err)
		}
	}
	return nil
}

// checkDistinctFiles rejects a run that would overwrite its own input, or one of its outputs with another.
func (cfg *Config) checkDistinctFiles() error {
	switch {
	case remotefs.IsSame(cfg.InputFile, cfg.Output):
		return terminal.Usagef("-o %s is the file of -I: use another name", cfg.Output)
	case remotefs.IsSame(cfg.InputFile, cfg.ErrorFile):
		return terminal.Usagef("--errors %s is the file of -I: use another name", cfg.ErrorFile)
	case remotefs.IsSame(cfg.Output, cfg.ErrorFile):
		return terminal.Usagef("--errors %s is the file of -o: use another name", cfg.ErrorFile)
	}
	return nil
}
