package server

import (
	"context"
	"net"
	"net/http"
	"time"
)

const (
	resumePeriod = 5 * time.Second // between two looks for runs that another server has left
	closeTime    = time.Second     // how long responses may take after the last run has ended
)

// Serve resumes stored runs, and then accepts connections until ctx ends; Options.Access must be set.
// At the end, active runs may take the time drain. started is called when connections are accepted. It does
// not close the application.
func (s *Server) Serve(ctx context.Context, l net.Listener, drain time.Duration, started func()) error {
	if n, err := s.Resume(ctx); err != nil {
		s.log.Error("stored runs could not be resumed", "error", err)
	} else if n > 0 {
		s.log.Info("runs resumed", "runs", n)
	}
	background, stop := context.WithCancel(ctx)
	defer stop()
	go s.resumeRuns(background)
	srv := s.opts.Access.Server(s.routed)
	ended := make(chan error, 1)
	go func() { ended <- s.opts.Access.Serve(srv, l) }()
	started()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	s.drain(srv, drain)
	return nil
}

// drain waits for active runs and requests.
func (s *Server) drain(srv *http.Server, longest time.Duration) {
	s.log.Info("shutting down")
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		s.log.Warn("active runs were ended", "after", longest)
	}
	closing, done := context.WithTimeout(context.Background(), closeTime)
	defer done()
	if err := srv.Shutdown(closing); err != nil {
		_ = srv.Close()
	}
}

// resumeRuns continues runs that another server has left.
func (s *Server) resumeRuns(ctx context.Context) {
	tick := time.NewTicker(resumePeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if _, err := s.Resume(ctx); err != nil && ctx.Err() == nil {
				s.log.Warn("stored runs could not be resumed", "error", err)
			}
		}
	}
}
