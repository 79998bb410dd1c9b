package encrypted_test

import "github.com/qtype-dev/qtype/internal/memory/encrypted/encryptedtest"

// Sessions that tests write and read.
var (
	newMemory = encryptedtest.NewMemory
	runTurn   = encryptedtest.RunTurn
	runTurns  = encryptedtest.RunTurns
	readAll   = encryptedtest.ReadAll
)
