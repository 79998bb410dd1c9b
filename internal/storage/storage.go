// Package storage holds what the stores of memories share: addresses, errors,
// timeouts, JSON records and paging.
package storage
