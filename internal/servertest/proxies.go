package servertest

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

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
