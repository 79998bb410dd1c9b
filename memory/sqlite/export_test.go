package sqlite

import "context"

// LimitPages makes the disk seem full after so many pages of 4 KiB.
func (s *Store) LimitPages(ctx context.Context, pages string) error {
	f, err := s.open(ctx, true)
	if err != nil {
		return err
	}
	_, err = f.write.ExecContext(ctx, "PRAGMA max_page_count = "+pages)
	return err
}

// HurryUp makes writes give up on a locked file at once.
func (s *Store) HurryUp(ctx context.Context) error {
	f, err := s.open(ctx, true)
	if err != nil {
		return err
	}
	_, err = f.write.ExecContext(ctx, "PRAGMA busy_timeout = 1")
	return err
}
