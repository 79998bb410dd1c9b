package redis

import driver "github.com/redis/go-redis/v9"

// Hook adds a hook to the driver's client.
func (s *Store) Hook(h driver.Hook) error {
	client, _, err := open(s)
	if err == nil {
		client.(interface{ AddHook(hook driver.Hook) }).AddHook(h)
	}
	return err
}
