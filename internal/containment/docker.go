package containment

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/subprocess"
)

// clientVariables are the variables of the environment that the program docker needs.
func clientVariables() []string {
	return []string{"PATH", "HOME", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH", "DOCKER_API_VERSION", "XDG_RUNTIME_DIR", "SSH_AUTH_SOCK"}
}

// docker returns the program that starts a program in a new container.
func (c *Container) docker(p subprocess.Program, folders []string) subprocess.Program {
	name := "qtype-" + strings.ToLower(rand.Text())
	args := []string{"run", "--rm", "--init", "--interactive", "--name", name, "--read-only", "--tmpfs", "/tmp",
		"--cap-drop", "ALL", "--security-opt", "no-new-privileges"}
	if !c.network {
		args = append(args, "--network", "none")
	}
	if id := os.Getuid(); id >= 0 {
		args = append(args, "--user", fmt.Sprintf("%d:%d", id, os.Getgid()))
	}
	reached := c.mounts(p.Path, folders)
	for _, m := range reached {
		args = append(args, "--mount", mountOption(m.path, m.path, m.writable))
	}
	for _, file := range c.hidden(folders) {
		args = append(args, "--mount", mountOption(os.DevNull, file, false))
	}
	args = append(args, "--workdir", workingFolder(reached))
	client := c.client()
	variables, environ := environment(p.Env, client)
	args = append(append(args, variables...), "--entrypoint", p.Path, c.image)
	remove := subprocess.Program{Path: c.path, Args: []string{"rm", "--force", name}, Env: client, Supervisor: c.host.opts.Supervisor}
	p.Path, p.Args, p.Env = c.path, append(args, p.Args...), environ
	p.Killed = func() { // the end of the program docker does not end the container
		ctx, cancel := context.WithTimeout(context.Background(), commandTime)
		defer cancel()
		_, _ = remove.Run(ctx, nil) // fails if the container has just ended
	}
	return p
}

// client returns the environment of the program docker.
func (c *Container) client() []string {
	var all []string
	for _, name := range clientVariables() {
		if text := c.host.opts.Getenv(name); text != "" {
			all = append(all, name+"="+text)
		}
	}
	return all
}

// environment returns the options for the variables of a program, and the environment of the
// program docker, from which it reads their values: others can read its arguments.
func environment(given, client []string) (options, environ []string) {
	environ = slices.Clone(client)
	for _, variable := range given {
		name, _, _ := strings.Cut(variable, "=")
		if slices.Contains(clientVariables(), name) {
			options = append(options, "--env", variable)
			continue
		}
		options = append(options, "--env", name)
		environ = append(environ, variable)
	}
	return options, environ
}

// mountOption returns the value of --mount, a line of CSV.
func mountOption(from, to string, writable bool) string {
	fields := []string{"type=bind", "source=" + from, "target=" + to}
	if !writable {
		fields = append(fields, "readonly")
	}
	for i, field := range fields {
		if strings.ContainsAny(field, `,"`) {
			fields[i] = `"` + strings.ReplaceAll(field, `"`, `""`) + `"`
		}
	}
	return strings.Join(fields, ",")
}
