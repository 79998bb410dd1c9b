package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// holdFigures is the output of holdStreams.
type holdFigures struct {
	Streams    int     `json:"streams"`
	Before     float64 `json:"rss_before_mib"`
	After      float64 `json:"rss_mib"`
	PerStream  float64 `json:"kib_a_stream"`
	Goroutines float64 `json:"goroutines_a_stream"` // 0 if the server has no /metrics
}

// holdStreams opens streams whose model does not answer, and measures the server while
// all of them wait.
func holdStreams(arguments []string) error {
	target, err := url.Parse(arguments[0])
	if err != nil {
		return err
	}
	streams, err := positive(arguments[1])
	if err != nil {
		return err
	}
	out := holdFigures{Streams: streams, Before: processRSS(arguments[2])}
	goroutines := serverGoroutines(target)
	for range streams {
		conn, err := openStream(target)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
	}
	time.Sleep(time.Second) // the server has work to do after the first chunk
	out.After = processRSS(arguments[2])
	out.PerStream = (out.After - out.Before) * 1024 / float64(streams)
	out.Goroutines = (serverGoroutines(target) - goroutines) / float64(streams)
	return json.NewEncoder(os.Stdout).Encode(out)
}

// openStream sends a request and waits for the first chunk.
func openStream(target *url.URL) (net.Conn, error) {
	conn, err := net.Dial("tcp", target.Host)
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", target.Path, target.Host); err != nil {
		return nil, err
	}
	r := bufio.NewReaderSize(conn, 1024)
	for {
		line, err := r.ReadString('\n')
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %w", target, err)
		case strings.HasPrefix(line, "HTTP/") && !strings.Contains(line, " 200 "):
			return nil, fmt.Errorf("%s: %s", target, strings.TrimSpace(line))
		case strings.HasPrefix(line, "data:"):
			return conn, nil
		}
	}
}

// serverGoroutines returns the number of goroutines of a server by its metrics, 0 if it
// has none.
func serverGoroutines(target *url.URL) float64 {
	resp, err := http.Get("http://" + target.Host + "/metrics")
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "go_goroutines "); ok {
			n, _ := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			return n
		}
	}
	return 0
}
