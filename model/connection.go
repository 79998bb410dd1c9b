package model

import "net/http"

// Connection is how a model of a provider of another module is called.
type Connection struct {
	Info    Info           // describes the model; Name is sent to the server
	BaseURL string         // the address of the server: that of the document, of the environment or of the row
	Key     string         // the credential; empty for none. It belongs in no message
	Params  map[string]any // the inference parameters of the document
	Headers http.Header    // that the document adds to each request; nil for none
	HTTP    *http.Client   // carries the calls: it reaches only what the document may reach
}
