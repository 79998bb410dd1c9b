package servertest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"time"
)

// PhoenixVariable is the environment variable with the path of the program phoenix of the
// Python package arize-phoenix.
const PhoenixVariable = "QTYPE_PHOENIX"

// Phoenix starts Arize Phoenix, which stores traces. Its start takes about 20 s.
func Phoenix() (*Server, error) {
	program := os.Getenv(PhoenixVariable)
	if program == "" {
		return nil, fmt.Errorf("%w: set %s to the program phoenix of arize-phoenix", ErrMissing, PhoenixVariable)
	}
	grpc, claimed, err := claim() // Phoenix listens there too
	if err != nil {
		return nil, err
	}
	start := func(s *Server) (*exec.Cmd, error) {
		cmd := exec.Command(program, "serve")
		cmd.Env = append(os.Environ(), "PHOENIX_WORKING_DIR="+s.Folder, "PHOENIX_HOST=127.0.0.1", "PHOENIX_PORT="+strconv.Itoa(s.Port),
			"PHOENIX_GRPC_PORT="+strconv.Itoa(grpc), "PHOENIX_TELEMETRY_ENABLED=false")
		return cmd, claimed.Close()
	}
	return launch(&Server{start: start, ready: func(s *Server) error { return answers("http://" + s.Address() + "/healthz") }})
}

// answers returns an error unless a request succeeds within a second.
func answers(url string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, resp.Status)
	}
	return errors.Join(err, resp.Body.Close())
}
