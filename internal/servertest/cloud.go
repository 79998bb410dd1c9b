package servertest

import (
	"os"
	"os/exec"
	"strconv"
)

// S3 starts moto's server, which implements Amazon S3 and accepts any credentials.
func S3() (*Server, error) {
	return emulator("QTYPE_MOTO", "moto_server", func(s *Server) []string {
		return []string{"-H", "127.0.0.1", "-p", strconv.Itoa(s.Port)}
	})
}

// GoogleStorage starts an emulator of Google Cloud Storage.
func GoogleStorage() (*Server, error) {
	return emulator("QTYPE_GCS_EMULATOR", "gcp-storage-emulator", func(s *Server) []string {
		return []string{"start", "--host", "127.0.0.1", "--port", strconv.Itoa(s.Port), "--in-memory"}
	})
}

// Azurite starts Microsoft's emulator of Azure Blob Storage.
func Azurite() (*Server, error) {
	return emulator("QTYPE_AZURITE", "azurite-blob", func(s *Server) []string {
		return []string{"--inMemoryPersistence", "--silent", "--blobHost", "127.0.0.1", "--blobPort", strconv.Itoa(s.Port),
			"--skipApiVersionCheck", "--disableTelemetry"}
	})
}

// AzuriteAccount and AzuriteKey are the well-known credentials of Azurite.
const (
	AzuriteAccount = "devstoreaccount1"
	AzuriteKey     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// emulator starts the program that an environment variable names, or one on PATH.
func emulator(variable, name string, args func(*Server) []string) (*Server, error) {
	path := os.Getenv(variable)
	if path == "" {
		var err error
		if path, err = find(name); err != nil {
			return nil, err
		}
	}
	start := func(s *Server) (*exec.Cmd, error) { return exec.Command(path, args(s)...), nil }
	return launch(&Server{start: start, ready: checkListens})
}

// checkListens returns an error unless a server accepts connections.
func checkListens(s *Server) error {
	conn, err := s.dial()
	if err != nil {
		return err
	}
	return conn.Close()
}

// BigQuery starts an emulator of Google BigQuery, the program bqemulator that QTYPE_BIGQUERY names. The caller
// closes it.
func BigQuery() (*Server, error) {
	return emulator("QTYPE_BIGQUERY", "bqemulator", func(s *Server) []string {
		return []string{"start", "--rest-port", strconv.Itoa(s.Port), "--grpc-port", "0", "--log-level", "error"}
	})
}
