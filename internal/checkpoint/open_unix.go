//go:build unix

package checkpoint

import "syscall"

// noFollow are the flags by which a link is not followed, and a pipe does not block.
const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK
