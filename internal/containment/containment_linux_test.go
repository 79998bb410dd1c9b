package containment_test

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/qtype-dev/qtype/internal/containment"
	"github.com/qtype-dev/qtype/internal/subprocess"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/spec"
)

// supervisor is this executable.
var supervisor *subprocess.Supervisor

func TestMain(m *testing.M) {
	supervisor = subprocess.Supervise()
	os.Exit(m.Run())
}

// needBwrap skips a test where bubblewrap does not work.
func needBwrap(t *testing.T) *containment.Host {
	t.Helper()
	h := containment.NewHost(containment.Options{Getenv: os.Getenv, Supervisor: supervisor})
	if _, err := h.Container("t", &spec.Containment{Type: spec.ContainmentBwrap}, "."); err != nil {
		if os.Getenv("QTYPE_CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return h
}

// shell runs a script in a container, and returns its output or its error.
func shell(t *testing.T, h *containment.Host, declared *spec.Containment, folder, script string) string {
	t.Helper()
	c, err := h.Container("t", declared, folder)
	testkit.Must(t, err)
	env := c.Environment(os.Getenv, map[string]string{"GIVEN": "given"})
	out, err := c.Wrap(subprocess.Program{Path: "/bin/sh", Args: []string{"-c", script}, Env: env, Supervisor: supervisor}).Run(t.Context(), []byte("input\n"))
	if err != nil {
		return "error: " + err.Error()
	}
	return strings.TrimSpace(string(out))
}

// TestBwrap_Hostile has programs that try to reach what is not declared.
func TestBwrap_Hostile(t *testing.T) {
	h := needBwrap(t)
	t.Setenv("MARKED_VARIABLE", "secret")
	folder, home := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	for _, name := range []string{"in/file", "out/file", "other/file"} {
		testkit.Must(t, os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o700))
		testkit.Must(t, os.WriteFile(filepath.Join(folder, name), []byte("content of "+name), 0o600))
	}
	testkit.Must(t, os.WriteFile(filepath.Join(home, "key"), []byte("secret"), 0o600))
	t.Chdir(folder)
	declared := &spec.Containment{Type: "bwrap", Read: []string{"in"}, Write: []string{"out"}}
	for script, want := range map[string]string{
		"cat":                         "input",
		"cat in/file":                 "error: ", // the working folder is not declared
		"cat " + folder + "/in/file":  "content of in/file",
		"cat " + folder + "/out/file": "content of out/file",
		"cat " + folder + "/other/file || echo refused": "refused",
		"ls " + folder: "in\nout",
		"cat " + home + "/key || cat $HOME/key || echo refused":      "refused",
		"cat /etc/shadow || echo refused":                            "refused",
		"echo x >" + folder + "/in/new || echo refused":              "refused",
		"echo x >/usr/new || echo x >/new || echo refused":           "refused",
		"echo x >/tmp/new && cat /tmp/new; ls /tmp | wc -l":          "x\n2", // the file, and the folder of the test
		"echo x >" + folder + "/out/new && echo written":             "written",
		"echo $GIVEN-$MARKED_VARIABLE; env | grep -c secret || true": "given-\n0",
		"echo $HOME; pwd": "/tmp\n/tmp",
		"ls /proc | grep -c '^[0-9]' | { read n; [ $n -lt 8 ] && echo few; }": "few",
		"cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep -c MARKED || true":  "0",
		"grep CapEff /proc/self/status":                                       "CapEff:\t0000000000000000",
		"mount -t tmpfs none /usr || echo refused":                            "refused",
		"exit 3": "error: exit status 3",
	} {
		if got := shell(t, h, declared, folder, script); got != want && (want != "error: " || !strings.HasPrefix(got, want)) {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
	if got := testkit.ReadFile(t, filepath.Join(folder, "out", "new")); got != "x\n" {
		t.Errorf("the declared folder has %q", got)
	}
	if got := shell(t, h, &spec.Containment{Type: "bwrap", Read: []string{"."}}, folder, "cat in/file; pwd"); got != "content of in/file"+folder {
		t.Errorf("in the declared working folder: %q", got)
	}
	if _, err := os.Stat("/tmp/new"); err == nil {
		t.Error("/tmp is not private")
	}
}

// TestBwrap_Network connects to a listener on loopback.
func TestBwrap_Network(t *testing.T) {
	h := needBwrap(t)
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	defer func() { _ = listener.Close() }()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	connect := "python3 -S -c 'import socket; socket.create_connection((\"127.0.0.1\", " + port + ")); print(\"connected\")' 2>&1 | tail -n 1"
	if got := shell(t, h, &spec.Containment{Type: "bwrap"}, ".", connect); !strings.HasPrefix(got, "ConnectionRefusedError") {
		t.Errorf("without network: %s", got)
	}
	if got := shell(t, h, &spec.Containment{Type: "bwrap", Network: true}, ".", connect); got != "connected" {
		t.Errorf("with network: %s", got)
	}
}

// TestBwrap_DiesWithParent cancels a program that has started a daemon, which holds a FIFO.
func TestBwrap_DiesWithParent(t *testing.T) {
	h := needBwrap(t)
	folder := t.TempDir()
	fifo := filepath.Join(folder, "held")
	testkit.Must(t, syscall.Mkfifo(fifo, 0o600))
	for name, by := range map[string]*subprocess.Supervisor{"supervisor": supervisor, "process group": nil} {
		c, err := h.Container("t", &spec.Containment{Type: "bwrap", Write: []string{folder}}, ".")
		testkit.Must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		p := c.Wrap(subprocess.Program{Path: "/bin/sh", Args: []string{"-c", "exec >" + fifo + "; trap '' TERM HUP INT; setsid sleep 1000000 & echo ready; sleep 1000000"},
			Env: c.Environment(os.Getenv, nil), Supervisor: by})
		ended := make(chan error, 1)
		go func() {
			_, err := p.Run(ctx, nil)
			ended <- err
		}()
		f, err := os.Open(fifo)
		testkit.Must(t, err)
		line := make([]byte, 6)
		if _, err := f.Read(line); err != nil || string(line) != "ready\n" {
			t.Errorf("%s: %q, %v", name, line, err)
		}
		cancel()
		<-ended
		if n, err := f.Read(line); n > 0 { // ends with the last process that holds the FIFO
			t.Errorf("%s: %q, %v", name, line[:n], err)
		}
		_ = f.Close()
	}
}

// TestBwrap_Folders checks that the folders of modules can be read, but not their .env files.
func TestBwrap_Folders(t *testing.T) {
	h := needBwrap(t)
	folder := t.TempDir()
	testkit.Must(t, os.WriteFile(filepath.Join(folder, ".env"), []byte("KEY=secret"), 0o600))
	testkit.Must(t, os.WriteFile(filepath.Join(folder, "a.py"), []byte("a"), 0o600))
	run := func(declared *spec.Containment) string {
		c, err := h.Container("t", declared, folder)
		testkit.Must(t, err)
		out, err := c.Wrap(subprocess.Program{Path: "/bin/sh", Args: []string{"-c", "cat " + folder + "/a.py " + folder + "/.env || true"}, Supervisor: supervisor}, folder).Run(t.Context(), nil)
		testkit.Must(t, err)
		return string(out)
	}
	if got := run(&spec.Containment{Type: "bwrap"}); got != "a" {
		t.Errorf("not declared: %q", got)
	}
	if got := run(&spec.Containment{Type: "bwrap", Read: []string{".env"}}); got != "aKEY=secret" {
		t.Errorf("declared: %q", got)
	}
}

// withPrograms returns an environment whose PATH is a folder with shell scripts.
func withPrograms(t *testing.T, scripts map[string]string) (getenv func(string) string, folder string) {
	t.Helper()
	folder = t.TempDir()
	for name, script := range scripts {
		testkit.Must(t, os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"+script), 0o700))
	}
	return func(name string) string { return map[string]string{"PATH": folder, "HOME": "/home/ada"}[name] }, folder
}

func TestHost_Container(t *testing.T) {
	broken, _ := withPrograms(t, map[string]string{"bwrap": "echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1", "docker": "exit 0"})
	none, _ := withPrograms(t, nil)
	limits := func(kinds ...string) *trust.Policy {
		return &trust.Policy{Limits: &trust.Limits{File: "policy.yaml", Containment: kinds}}
	}
	sandboxed := &trust.Policy{Level: trust.Sandboxed, Base: t.TempDir()}
	const refused = "the document may not start a program without containment: the policy of the organization, policy.yaml, does not list it under containment"
	for _, c := range []struct {
		declared      *spec.Containment
		getenv        func(string) string
		policy        *trust.Policy
		err, warnings string
	}{
		{declared: nil, getenv: none},
		{declared: &spec.Containment{Type: "none"}, getenv: none},
		{declared: &spec.Containment{Type: "bwrap"}, getenv: none, err: `containment: program "bwrap" not found in PATH: install bubblewrap`},
		{declared: &spec.Containment{Type: "bwrap"}, getenv: broken, err: "containment: bubblewrap does not work here: exit status 1: bwrap: setting up uid map: Permission denied"},
		{declared: &spec.Containment{Type: "auto"}, getenv: broken,
			warnings: "tool t starts its program without containment: bubblewrap does not work here: exit status 1: bwrap: setting up uid map: Permission denied"},
		{declared: &spec.Containment{Type: "auto"}, getenv: none, policy: limits("bwrap"), err: refused + `; program "bwrap" not found in PATH: install bubblewrap`},
		{declared: nil, getenv: none, policy: limits("bwrap", "docker"), err: refused},
		{declared: nil, getenv: none, policy: limits("none")},
		{declared: &spec.Containment{Type: "docker", Image: "x"}, getenv: broken, policy: limits("bwrap"),
			err: "the document may not start a program with containment of type docker: the policy of the organization, policy.yaml, does not list it under containment"},
		{declared: &spec.Containment{Type: "docker", Image: "x"}, getenv: none, err: `containment: program "docker" not found in PATH`},
		{declared: &spec.Containment{Type: "docker"}, getenv: broken, err: "containment: no image is declared"},
		{declared: &spec.Containment{Type: "docker", Image: "x", Read: []string{"missing"}}, getenv: broken, err: `containment: read: "missing" does not exist`},
		{declared: &spec.Containment{Type: "docker", Image: "x", Read: []string{"/etc/passwd"}}, getenv: broken, policy: sandboxed,
			err: "containment: read: the document may not read the file /etc/passwd: it is sandboxed; allow it with --allow-read /etc/passwd"},
		{declared: &spec.Containment{Type: "docker", Image: "x", Write: []string{"/tmp"}}, getenv: broken, policy: sandboxed,
			err: "containment: write: the document may not write the file /tmp: it is sandboxed; allow it with --out-dir DIR"},
	} {
		var warnings []string
		h := containment.NewHost(containment.Options{Getenv: c.getenv, Policy: c.policy, Warn: func(line string) { warnings = append(warnings, line) }})
		_, err := h.Container("t", c.declared, t.TempDir())
		if got := strings.Join(warnings, "\n"); got != c.warnings {
			t.Errorf("%+v: warnings %q", c.declared, got)
		}
		if got := ""; err != nil || c.err != "" {
			if err != nil {
				got = err.Error()
			}
			if got != c.err {
				t.Errorf("%+v:\n%s\nwant\n%s", c.declared, got, c.err)
			}
		}
		if refusal := new(trust.RefusedError); strings.Contains(c.err, "may not") != errors.As(err, &refusal) {
			t.Errorf("%+v: %T", c.declared, err)
		}
	}
}

// TestDocker_Arguments runs a program named docker that records its arguments and environment.
func TestDocker_Arguments(t *testing.T) {
	t.Log("SKIPPED: a real Docker is not used, because the daemon cannot be started by tests")
	getenv, bin := withPrograms(t, map[string]string{"docker": `exec >>"$(/usr/bin/dirname "$0")/calls"; echo "$#: $*"; /usr/bin/env | /usr/bin/sort`})
	folder := t.TempDir()
	testkit.Must(t, os.WriteFile(filepath.Join(folder, "count"), []byte("#!/bin/sh\n"), 0o700))
	testkit.Must(t, os.WriteFile(filepath.Join(folder, "a,b"), nil, 0o600))
	testkit.Must(t, os.Mkdir(filepath.Join(folder, "out"), 0o700))
	h := containment.NewHost(containment.Options{Getenv: getenv})
	c, err := h.Container("t", &spec.Containment{Type: "docker", Image: "python:3.13", Read: []string{"a,b"}, Write: []string{"out"}}, folder)
	testkit.Must(t, err)
	path, err := c.Find("./count", folder, getenv("PATH"))
	testkit.Must(t, err)
	env := c.Environment(func(string) string { return "of this computer" }, map[string]string{"KEY": "k-1", "PATH": "/bin"})
	p := c.Wrap(subprocess.Program{Path: path, Args: []string{"--json"}, Env: env})
	name := p.Args[slices.Index(p.Args, "--name")+1]
	p.Args[slices.Index(p.Args, "--name")+1] = "NAME"
	uid := p.Args[slices.Index(p.Args, "--user")+1]
	want := []string{"run", "--rm", "--init", "--interactive", "--name", "NAME", "--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL",
		"--security-opt", "no-new-privileges", "--network", "none", "--user", uid,
		"--mount", `type=bind,"source=` + folder + `/a,b","target=` + folder + `/a,b",readonly`,
		"--mount", "type=bind,source=" + folder + "/count,target=" + folder + "/count,readonly",
		"--mount", "type=bind,source=" + folder + "/out,target=" + folder + "/out",
		"--workdir", "/tmp", "--env", "HOME=/tmp", "--env", "KEY", "--env", "PATH=/bin", "--env", "TMPDIR", "--entrypoint", folder + "/count", "python:3.13", "--json"}
	if !slices.Equal(p.Args, want) {
		t.Errorf("the arguments are\n%q, want\n%q", p.Args, want)
	}
	_, err = p.Run(t.Context(), nil)
	testkit.Must(t, err)
	p.Killed()
	calls := testkit.ReadFile(t, filepath.Join(bin, "calls"))
	for _, line := range []string{"--network none", "\nHOME=/home/ada\n", "\nKEY=k-1\n", "\nPATH=" + bin + "\n", "3: rm --force " + name + "\n"} {
		if !strings.Contains(calls, line) {
			t.Errorf("no %q in\n%s", line, calls)
		}
	}
	if strings.Contains(calls, "of this computer") {
		t.Error("the container gets variables of this computer")
	}
	if got, err := c.Find("python3", folder, ""); got != "python3" || err != nil {
		t.Errorf("a program of the image is %q, %v", got, err)
	}
}
