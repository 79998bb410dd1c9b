package redis

import driver "github.com/redis/go-redis/v9"

// Hook lets a hook see what is sent.
func (s *Store) Hook(h driver.Hook) error {
	client, _, err := s.open()
	if err == nil {
		client.AddHook(h)
	}
	return err
}
