// Package containment starts the programs of tools so that they reach only what the document
// declares: by bubblewrap, or in a container of Docker.
package containment

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/subprocess"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/spec"
)

// commandTime limits the commands that try bubblewrap and remove containers.
const commandTime = 30 * time.Second

// Options are what a Host needs of the application.
type Options struct {
	Getenv     func(string) string    // the environment of this computer
	Policy     *trust.Policy          // what the document may reach; nil allows everything
	Supervisor *subprocess.Supervisor // starts programs; may be nil
	Warn       func(string)           // receives warnings; may be nil
}

// Host makes containers on this computer. It is safe for concurrent use.
type Host struct {
	opts  Options
	bwrap func() (path string, err error) // finds bubblewrap, and tries it once
}

// NewHost makes a Host; it starts nothing.
func NewHost(opts Options) *Host {
	h := &Host{opts: opts}
	h.bwrap = sync.OnceValues(h.findBwrap)
	return h
}

// findBwrap returns the path of bubblewrap, or why it does not work here.
func (h *Host) findBwrap() (string, error) {
	if runtime.GOOS != "linux" {
		return "", fmt.Errorf("bubblewrap exists only on Linux")
	}
	path, err := subprocess.Find("bwrap", ".", h.opts.Getenv("PATH"))
	if err != nil {
		return "", fmt.Errorf("%w: install bubblewrap", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), commandTime)
	defer cancel()
	try := subprocess.Program{Path: path, Args: append(isolated(), "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"),
		Env: []string{"PATH=" + h.opts.Getenv("PATH")}, Supervisor: h.opts.Supervisor}
	if _, err := try.Run(ctx, nil); err != nil {
		return "", fmt.Errorf("bubblewrap does not work here: %w", err)
	}
	return path, nil
}

// Container starts programs with the limits of a declaration. nil starts them without
// limits. It is safe for concurrent use.
type Container struct {
	host    *Host
	image   string // of docker; empty for bubblewrap
	path    string // of the program bwrap or docker
	network bool
	read    []string // absolute paths
	write   []string // absolute paths
}

// Container returns what starts the program of a tool with the limits that the tool
// declares; declared is nil for none. Relative paths are relative to folder. An error means
// that the program cannot be contained so here, or that the policy does not allow it.
func (h *Host) Container(tool string, declared *spec.Containment, folder string) (*Container, error) {
	c, err := h.container(tool, declared)
	if c == nil || err != nil {
		return nil, err
	}
	c.network = declared.Network
	if c.read, err = h.paths("read", declared.Read, folder, h.opts.Policy.Read); err != nil {
		return nil, err
	}
	c.write, err = h.paths("write", declared.Write, folder, h.opts.Policy.Write)
	return c, err
}

// container returns a Container without files; nil for none.
func (h *Host) container(tool string, declared *spec.Containment) (*Container, error) {
	kind := spec.ContainmentNone
	if declared != nil {
		kind = cmp.Or(declared.Type, kind)
	}
	c := &Container{host: h}
	var missing error
	switch kind {
	case spec.ContainmentAuto, spec.ContainmentBwrap:
		c.path, missing = h.bwrap()
	case spec.ContainmentDocker:
		c.image = declared.Image
		if c.path, missing = subprocess.Find("docker", ".", h.opts.Getenv("PATH")); missing == nil && c.image == "" {
			missing = fmt.Errorf("no image is declared")
		}
	}
	if kind == spec.ContainmentAuto {
		if kind = spec.ContainmentBwrap; missing != nil {
			kind = spec.ContainmentNone
		}
	}
	if err := h.opts.Policy.Containment(kind); err != nil {
		return nil, because(err, missing)
	}
	switch {
	case kind != spec.ContainmentNone && missing != nil:
		return nil, &UnavailableError{missing}
	case kind != spec.ContainmentNone:
		return c, nil
	case missing != nil && h.opts.Warn != nil:
		h.opts.Warn(fmt.Sprintf("tool %s starts its program without containment: %s", tool, missing))
	}
	return nil, nil
}

// UnavailableError is the error of a containment that does not work on this computer.
type UnavailableError struct {
	Err error // why
}

func (e *UnavailableError) Error() string { return "containment: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

// because adds a reason to an error.
func because(err, reason error) error {
	if reason == nil {
		return err
	}
	return fmt.Errorf("%w; %w", err, reason)
}

// paths returns the absolute paths of files that exist and that the document may reach.
func (h *Host) paths(key string, declared []string, folder string, allowed func(string) error) ([]string, error) {
	var all []string
	for _, name := range declared {
		path := filepath.FromSlash(name)
		if !filepath.IsAbs(path) {
			path = filepath.Join(folder, path)
		}
		path, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		if err := allowed(path); err != nil {
			return nil, fmt.Errorf("containment: %s: %w", key, err)
		}
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("containment: %s: %q does not exist", key, name)
		}
		all = append(all, path)
	}
	return all, nil
}

// IsImage reports whether programs run in a container of an image, which has its own files
// and programs.
func (c *Container) IsImage() bool { return c != nil && c.image != "" }

// Key identifies what the programs of a Container can reach.
func (c *Container) Key() string {
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%q %q %t %q %q", c.path, c.image, c.network, c.read, c.write)
}

// Find returns the file of a program, as subprocess.Find does. A name without a folder is
// that of a program of the image, if there is one.
func (c *Container) Find(name, folder, path string) (string, error) {
	if c.IsImage() && name != "" && !strings.ContainsAny(name, "/\\\x00") {
		return name, nil
	}
	return subprocess.Find(name, folder, path)
}

// Environment returns the environment of a program, as subprocess.Environment does. In a
// container it has no variables of the user, and in an image none of this computer.
func (c *Container) Environment(lookup func(string) string, given map[string]string, also ...string) []string {
	if c == nil {
		return subprocess.Environment(lookup, given, also...)
	}
	inherited := lookup
	if c.IsImage() {
		inherited = func(string) string { return "" }
	}
	return subprocess.Environment(func(name string) string {
		switch name {
		case "HOME", "TMPDIR":
			return "/tmp"
		case "USER", "LOGNAME", "TMP", "TEMP", "SSL_CERT_FILE", "SSL_CERT_DIR":
			return ""
		}
		return inherited(name)
	}, given, also...)
}

// Wrap returns the program that starts a program in the container. The folders can be
// read, except for their .env files.
func (c *Container) Wrap(p subprocess.Program, folders ...string) subprocess.Program {
	switch {
	case c == nil:
		return p
	case c.IsImage():
		return c.docker(p, folders)
	}
	p.Args = append(c.bwrapArgs(p.Path, folders), append([]string{p.Path}, p.Args...)...)
	p.Path = c.path
	return p
}
