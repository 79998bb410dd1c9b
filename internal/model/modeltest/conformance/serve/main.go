// Command serve listens on loopback as the servers of all providers of chat models, and refuses what they refuse. The
// address is /SCENARIO/SERVER/… with the path of the provider, such as http://127.0.0.1:18750/tool/openai/v1/responses; GET
// /verdicts lists what was found in the requests, DELETE /verdicts forgets it.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/qtype-dev/qtype/internal/model/modeltest/conformance"
)

func main() {
	address := flag.String("addr", "127.0.0.1:18750", "the `address` to listen on")
	flag.Parse()
	if err := serve(*address); err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
}

// serve listens until the process ends.
func serve(address string) error {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", address)
	if err != nil {
		return err
	}
	fmt.Println("scenarios:")
	for _, s := range conformance.Scenarios() {
		fmt.Printf("  %-14s %s\n", s.Name, s.About)
	}
	fmt.Println("servers, with the base URL of each for the scenario tool:")
	for _, s := range conformance.Rules().Servers {
		fmt.Printf("  http://%s/tool/%s%s\n", l.Addr(), s.Name, s.Base)
	}
	server := http.Server{Handler: &conformance.Handler{}, ReadHeaderTimeout: time.Minute}
	return server.Serve(l)
}
