package servertest

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Ports of servers are below the ephemeral range, so that no client and no test server
// of another package gets one while its server restarts. The bus of a Redis cluster
// uses the port 10,000 higher.
const (
	firstPort = 10_000
	ports     = 10_000
)

// claim finds a free port and reserves it from other test processes until the claim is
// closed, by the UDP port of the same number, which no server uses.
func claim() (int, io.Closer, error) {
	var listen net.ListenConfig
	from := rand.IntN(ports)
	for i := range ports {
		port := firstPort + (from+i)%ports
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		reservation, err := listen.ListenPacket(context.Background(), "udp", address)
		if err != nil {
			continue
		}
		l, err := listen.Listen(context.Background(), "tcp", address)
		if err == nil {
			return port, reservation, l.Close()
		}
		_ = reservation.Close() // nothing was sent
	}
	return 0, nil, errors.New("no port of 127.0.0.1 is free")
}

// Refused returns an address that refuses connections until the test ends. The port is
// bound, so that no other server gets it.
func Refused(t testing.TB) string {
	t.Helper()
	syscall.ForkLock.RLock() // no process that starts meanwhile inherits it
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(socket)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(socket) }) // nothing was sent
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	bound, err := syscall.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(bound.(*syscall.SockaddrInet4).Port))
}

// Replica is a process of qtype serve.
type Replica struct {
	Command *exec.Cmd
	URL     string // without a slash at the end
}

// Serve starts the program qtype of the PATH with the command serve for app.qtype.yaml of a folder,
// and waits until it listens. It is killed after the test.
func Serve(t *testing.T, folder string, args ...string) *Replica {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), "qtype", append([]string{"serve", "app.qtype.yaml", "--port", "0"}, args...)...)
	cmd.Dir = folder
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	servingAt := regexp.MustCompile(`on (https?://[^ ]+)/ \(`)
	lines := bufio.NewScanner(stderr)
	var seen strings.Builder
	for lines.Scan() {
		seen.WriteString(lines.Text() + "\n")
		if found := servingAt.FindStringSubmatch(lines.Text()); found != nil {
			go func() { _, _ = io.Copy(io.Discard, stderr) }()
			return &Replica{cmd, found[1]}
		}
	}
	t.Fatalf("qtype serve ended:\n%s", seen.String())
	return nil
}

// Nginx starts nginx with a server block, which listens on 443 ssl there and without TLS here.
func Nginx(block string) (*Server, error) {
	path, err := find("nginx", "/usr/sbin")
	if err != nil {
		return nil, err
	}
	start := func(s *Server) (*exec.Cmd, error) {
		block := strings.Replace(block, "listen 443 ssl;", "listen 127.0.0.1:"+strconv.Itoa(s.Port)+";", 1)
		settings := "daemon off; master_process off; pid nginx.pid; error_log stderr;\nevents {}\nhttp {\naccess_log off;\n"
		for _, name := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
			settings += name + "_temp_path " + name + ";\n"
		}
		file := filepath.Join(s.Folder, "nginx.conf")
		return exec.Command(path, "-p", s.Folder, "-e", "stderr", "-c", file), os.WriteFile(file, []byte(settings+block+"}\n"), 0o600)
	}
	return launch(&Server{start: start, ready: checkHTTP})
}

// Caddy starts Caddy with a site block, whose address is name there and without TLS here.
func Caddy(name, block string) (*Server, error) {
	path, err := find("caddy")
	if err != nil {
		return nil, err
	}
	start := func(s *Server) (*exec.Cmd, error) {
		block := strings.Replace(block, name+" {", "http://"+name+":"+strconv.Itoa(s.Port)+" {\nbind 127.0.0.1", 1)
		file := filepath.Join(s.Folder, "Caddyfile")
		cmd := exec.Command(path, "run", "--config", file, "--adapter", "caddyfile")
		cmd.Env = append(os.Environ(), "HOME="+s.Folder, "XDG_DATA_HOME="+s.Folder, "XDG_CONFIG_HOME="+s.Folder)
		return cmd, os.WriteFile(file, []byte("{\nadmin off\nauto_https off\n}\n"+block), 0o600)
	}
	return launch(&Server{start: start, ready: checkHTTP})
}

// checkHTTP returns an error unless a server answers requests, however it does.
func checkHTTP(s *Server) error {
	res, err := http.Get("http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port)) + "/")
	if err != nil {
		return err
	}
	return res.Body.Close()
}
