package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// loadFigures is the output of loadStreams. Times are in milliseconds.
type loadFigures struct {
	Rate     float64 `json:"rate"`      // requests a second
	CPU      float64 `json:"cpu_ns_op"` // of the server, a request
	FirstP50 float64 `json:"first_p50_ms"`
	FirstP99 float64 `json:"first_p99_ms"` // until the first part of the body
	TotalP50 float64 `json:"total_p50_ms"`
	TotalP99 float64 `json:"total_p99_ms"` // until the end of the body
	RSS      float64 `json:"rss_mib"`      // of the server, at the end
	Bytes    int64   `json:"bytes_op"`
}

// timing is how long one request took, in parts.
type timing struct {
	first, total time.Duration
	bytes        int64
}

// warmUp is the number of requests before the measurement.
const warmUp = 50

// loadStreams sends requests and measures the server and the time to the first chunk.
func loadStreams(arguments []string) error {
	conns, err := positive(arguments[1])
	if err != nil {
		return err
	}
	total, err := positive(arguments[2])
	if err != nil {
		return err
	}
	pid, url := arguments[3], arguments[0]
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: conns, MaxConnsPerHost: conns, DisableCompression: true}, Timeout: time.Minute}
	defer client.CloseIdleConnections()
	for range warmUp {
		if _, err := request(client, url); err != nil {
			return err
		}
	}
	cpu, began := processCPU(pid), time.Now()
	timings, err := requests(client, url, conns, total)
	if err != nil {
		return err
	}
	took := time.Since(began)
	out := loadFigures{Rate: float64(total) / took.Seconds(), CPU: float64(processCPU(pid)-cpu) / float64(total), RSS: processRSS(pid), Bytes: timings[0].bytes}
	out.FirstP50, out.FirstP99 = quantiles(timings, func(t timing) time.Duration { return t.first })
	out.TotalP50, out.TotalP99 = quantiles(timings, func(t timing) time.Duration { return t.total })
	return json.NewEncoder(os.Stdout).Encode(out)
}

// positive parses a positive number.
func positive(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%q is not a positive number", text)
	}
	return n, nil
}

// requests sends a number of requests from as many goroutines as there are connections.
func requests(client *http.Client, url string, conns, total int) ([]timing, error) {
	var next atomic.Int64
	var group sync.WaitGroup
	timings, failures := make([]timing, total), make([]error, conns)
	for c := range conns {
		group.Go(func() {
			for failures[c] == nil {
				n := next.Add(1) - 1
				if n >= int64(total) {
					return
				}
				timings[n], failures[c] = request(client, url)
			}
		})
	}
	group.Wait()
	if i := slices.IndexFunc(failures, func(err error) bool { return err != nil }); i >= 0 {
		return nil, failures[i]
	}
	return timings, nil
}

// request sends one request and reads its response.
func request(client *http.Client, url string) (timing, error) {
	began := time.Now()
	resp, err := client.Get(url)
	if err != nil {
		return timing{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return timing{}, fmt.Errorf("%s: status %d", url, resp.StatusCode)
	}
	var buf [4096]byte
	n, err := resp.Body.Read(buf[:])
	t := timing{first: time.Since(began), bytes: int64(n)}
	if err == nil {
		n, copyErr := io.Copy(io.Discard, resp.Body)
		t.bytes, err = t.bytes+n, copyErr
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	t.total = time.Since(began)
	return t, err
}

// quantiles returns the median and the 99th percentile in milliseconds.
func quantiles(timings []timing, of func(timing) time.Duration) (p50, p99 float64) {
	all := make([]time.Duration, len(timings))
	for i, t := range timings {
		all[i] = of(t)
	}
	slices.Sort(all)
	at := func(q float64) float64 { return all[int(q*float64(len(all)-1))].Seconds() * 1e3 }
	return at(.5), at(.99)
}
