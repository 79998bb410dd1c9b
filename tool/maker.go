package tool

import (
	"net/http"

	"github.com/qtype-dev/qtype/spec"
)

// Host is what a tool of another module gets of the program.
type Host struct {
	HTTP   func(Service) (*http.Client, error) // makes a client for a server, which the document may reach, with its credentials
	Secret func(spec.Secret) (string, error)   // resolves a key of the document
	Getenv func(name string) string            // returns a variable of the environment
}

// Maker is the declaration of a tool of another module. The program calls the handler with arguments that fit
// Arguments, and converts what it returns to the types of Results. Unless HasEffects is false, `qtype test` does not call it.
type Maker interface {
	spec.Tool
	// Make returns what runs the calls. It calls nothing.
	Make(Host) (ClientHandler, error)
}
